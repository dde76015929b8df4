// The live list: asks for the newest rows every two seconds and puts in only what is new, so that focus, selection and
// place stay; filters; moves by keyboard; shows a record beside the list where there is room for it.

import { wake } from "./page.js";

const EVERY = 2000;
const WIDE = matchMedia("(min-width: 70rem)");
const listing = document.getElementById("listing");
const filters = document.getElementById("filters");
const find = document.getElementById("find");
const told = document.getElementById("told");
const pause = document.getElementById("pause");
const live = document.getElementById("live");
const livetext = document.getElementById("livetext");
const clear = document.getElementById("clear");
const split = document.getElementById("split");
const peek = document.getElementById("peek");
const peekbody = document.getElementById("peekbody");
const peekfull = document.getElementById("peekfull");

let paused = false;
let asking = 0;
let shown = "";
let timer = 0;

// --- what is there

const rows = () => listing.querySelector("#rows");
const items = () => [...(rows()?.children ?? [])];
const visible = () => items().filter((item) => !item.hidden).map((item) => item.firstElementChild);

function query() {
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(filters)) if (value) asked.set(name, value);
  return asked.toString();
}

/** Brings the list to what `fresh` holds; rows that stay are the same elements as before. */
function settle(fresh, animate) {
  const now = rows();
  const next = fresh.querySelector("#rows");
  if (!now || !next) {
    const focused = listing.contains(document.activeElement);
    listing.replaceChildren(...fresh.childNodes);
    if (focused) find.focus({ preventScroll: true });
    return;
  }
  const before = new Map(items().map((item) => [item.dataset.key, item]));
  let place = now.firstElementChild;
  for (const item of [...next.children]) {
    const kept = before.get(item.dataset.key);
    if (kept) {
      before.delete(item.dataset.key);
      if (kept === place) place = place.nextElementSibling;
      else now.insertBefore(kept, place);
    } else {
      if (animate) item.classList.add("fresh");
      now.insertBefore(item, place);
    }
  }
  for (const gone of before.values()) {
    if (gone.contains(document.activeElement)) (gone.previousElementSibling ?? gone.nextElementSibling)?.firstElementChild.focus();
    gone.remove();
  }
}

function narrow() {
  const words = find.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  for (const item of items()) {
    const text = `${item.textContent} ${item.dataset.key}`.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  }
  const all = items().length;
  const left = visible().length;
  const noun = all === 1 ? "decision" : "decisions";
  const limit = Number(rows()?.dataset.limit ?? 0);
  told.textContent = left === all ? `${all}${all > 0 && all === limit ? " newest" : ""} ${noun}` : `${left} of ${all} ${noun}`;
}

// --- asking

async function ask(animate) {
  const mine = ++asking;
  try {
    const asked = query();
    const response = await fetch(`/page/rows${asked ? `?${asked}` : ""}`, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(8000) });
    // To the sign-in, when a session has ended.
    if (response.redirected) return location.reload();
    if (!response.ok) throw new Error(String(response.status));
    const text = await response.text();
    if (mine !== asking) return;
    const fresh = new DOMParser().parseFromString(text, "text/html").body;
    settle(document.adoptNode(fresh), animate);
    narrow();
    mark();
    state(paused ? "Paused" : "Live", !paused);
  } catch {
    if (mine === asking) state("Not reachable; trying again", false);
  }
}

function state(text, beating) {
  live.classList.toggle("beating", beating);
  if (livetext.textContent !== text) livetext.textContent = text;
}

function again() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (!paused && !document.hidden) await ask(true);
    again();
  }, EVERY);
}

function toggle() {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.querySelector("span").textContent = paused ? "Go on" : "Pause";
  pause.querySelector("use").setAttribute("href", paused ? "#i-play" : "#i-pause");
  state(paused ? "Paused" : "Live", !paused);
  if (!paused) ask(true);
}

// --- filters

filters.addEventListener("change", (event) => {
  if (event.target === find) return;
  const asked = query();
  history.replaceState(null, "", asked ? `?${asked}` : location.pathname);
  clear.hidden = !asked;
  ask(false);
});

filters.addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = find.value.trim();
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(wanted)) location.assign(`/decisions/${wanted}`);
  else visible()[0]?.focus();
});

find.addEventListener("input", narrow);
pause.addEventListener("click", toggle);

// --- the record beside the list

function mark() {
  for (const item of items()) {
    const current = shown !== "" && item.dataset.key === shown;
    item.classList.toggle("current", current);
    if (current) item.firstElementChild.setAttribute("aria-current", "true");
    else item.firstElementChild.removeAttribute("aria-current");
  }
}

async function open(link) {
  const key = link.parentElement.dataset.key;
  if (shown === key) return;
  shown = key;
  peek.hidden = false;
  split.classList.add("open");
  peekfull.href = link.getAttribute("href");
  peekbody.setAttribute("aria-busy", "true");
  mark();
  let text;
  try {
    const response = await fetch(`/page/record/${encodeURIComponent(key)}`, { headers: { accept: "text/html" } });
    if (response.redirected) return location.reload();
    text = await response.text();
  } catch {
    text = '<div class="empty"><h2>Not reachable</h2></div>';
  }
  if (shown !== key) return;
  peekbody.innerHTML = text;
  peekbody.scrollTop = 0;
  peekbody.removeAttribute("aria-busy");
  wake(peekbody);
}

function close() {
  if (peek.hidden) return false;
  const row = items().find((item) => item.dataset.key === shown)?.firstElementChild;
  const inside = peek.contains(document.activeElement);
  shown = "";
  peek.hidden = true;
  peekbody.replaceChildren();
  split.classList.remove("open");
  mark();
  if (inside || document.activeElement === document.body) row?.focus();
  return true;
}

listing.addEventListener("click", (event) => {
  const link = event.target.closest("a.row[href]");
  if (!link || !WIDE.matches || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  link.focus();
  open(link);
});

document.getElementById("peekclose").addEventListener("click", close);

// --- keys

function move(step) {
  const links = visible();
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = links[at === -1 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)];
  next.focus();
  if (!peek.hidden && next.hasAttribute("href")) open(next);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape") {
    if (event.target === find) {
      find.value = "";
      narrow();
      find.blur();
    } else close();
    return;
  }
  if (typing && !(event.target === find && event.key === "ArrowDown")) return;
  const inPeek = peek.contains(event.target);
  const done = {
    "/": () => find.focus(),
    ArrowDown: () => !inPeek && move(1),
    ArrowUp: () => !inPeek && move(-1),
    Home: () => !inPeek && visible()[0]?.focus(),
    End: () => !inPeek && visible().at(-1)?.focus(),
    p: toggle,
  }[event.key];
  if (done && done() !== false) event.preventDefault();
});

live.hidden = false;
state("Live", true);
narrow();
again();
