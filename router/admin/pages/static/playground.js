// The playground: a request is written or begun from a sample, images are dropped in, and the answer shown beside it.

import { imagesOf, merged } from "./merging.js";
import { wake } from "./page.js";

const MOST = 20e6;
const form = document.getElementById("ask");
const path = document.getElementById("path");
const body = document.getElementById("body");
const headers = document.getElementById("headers");
const drop = document.getElementById("drop");
const files = document.getElementById("files");
const dropped = document.getElementById("dropped");
const size = document.getElementById("size");
const problem = document.getElementById("problem");
const answer = document.getElementById("answer");
const go = document.getElementById("go");
const said = document.getElementById("said");

const WORDS = {
  401: "Your session has ended; load the page again.",
  413: "That is too large to be explained here.",
  503: "The workers have no time to explain now; traffic comes first. Try again.",
};

/** @type {{name: string, size: number, uri: string}[]} */
let images = [];
let asking = 0;

const kilobytes = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

function complain(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

function measure() {
  const bytes = new Blob([body.value]).size + images.reduce((sum, one) => sum + one.uri.length, 0);
  size.textContent = images.length ? `${kilobytes(bytes)}, ${images.length === 1 ? "1 image" : `${images.length} images`}` : kilobytes(bytes);
}

// --- images

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name || "pasted", size: file.size, uri: reader.result });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

async function take(list) {
  const chosen = [...list].filter((file) => file.type.startsWith("image/"));
  if (chosen.length < list.length) complain("Only images can be added here.");
  else complain("");
  if (chosen.reduce((sum, file) => sum + file.size, 0) + images.reduce((sum, one) => sum + one.size, 0) > MOST) {
    complain(`That is more than ${kilobytes(MOST)} of images.`);
    return;
  }
  images.push(...(await Promise.all(chosen.map(read))));
  draw();
}

function draw() {
  dropped.replaceChildren(
    ...images.map((image, index) => {
      const item = document.createElement("li");
      const picture = document.createElement("img");
      picture.src = image.uri;
      picture.alt = "";
      const name = document.createElement("span");
      name.className = "dropped-name";
      const words = document.createElement("bdi");
      words.textContent = image.name;
      const weight = document.createElement("span");
      weight.className = "soft num";
      weight.textContent = kilobytes(image.size);
      name.append(words, " ", weight);
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "plain small";
      remove.textContent = "Remove";
      remove.setAttribute("aria-label", `Remove ${image.name}`);
      remove.addEventListener("click", () => {
        images = images.filter((one) => one !== image);
        draw();
        (dropped.querySelectorAll("button")[index] ?? files).focus();
      });
      item.append(picture, name, remove);
      return item;
    }),
  );
  measure();
}

files.addEventListener("change", async () => {
  await take(files.files);
  files.value = "";
});

for (const kind of ["dragenter", "dragover"]) {
  form.addEventListener(kind, (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    drop.classList.add("over");
  });
}
form.addEventListener("dragleave", (event) => {
  if (!form.contains(event.relatedTarget)) drop.classList.remove("over");
});
form.addEventListener("drop", (event) => {
  drop.classList.remove("over");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  take(event.dataTransfer.files);
});
document.addEventListener("paste", (event) => {
  if (event.clipboardData?.files.length) {
    event.preventDefault();
    take(event.clipboardData.files);
  }
});

// --- samples

for (const sample of form.querySelectorAll("[data-body]")) {
  sample.addEventListener("click", () => {
    path.value = sample.dataset.path;
    body.value = sample.dataset.body;
    complain("");
    measure();
  });
}

// --- asking

function parsed() {
  try {
    return JSON.parse(body.value);
  } catch (error) {
    throw new Error(`The body is not JSON: ${error.message}`);
  }
}

function headerPairs() {
  const pairs = {};
  for (const line of headers.value.split("\n")) {
    if (!line.trim()) continue;
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(`A header is written as name: value, not as “${line.trim()}”.`);
    pairs[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
  }
  return pairs;
}

/** What is sent. Without images the text goes as it is, so that broken bodies can be tried as well. */
function request() {
  if (!images.length) return [body.value, null];
  const whole = merged(path.value, parsed(), images.map((one) => one.uri));
  return [JSON.stringify(whole), whole];
}

function showThumbs(whole) {
  let found = [];
  try {
    found = imagesOf(whole ?? JSON.parse(body.value));
  } catch {
    return;
  }
  for (const picture of answer.querySelectorAll("[data-image]")) {
    const uri = found[Number(picture.dataset.image) - 1];
    if (!uri) continue;
    const shown = document.createElement("img");
    shown.src = uri;
    shown.alt = `Image ${picture.dataset.image} of the request`;
    picture.querySelector(".thumb .icon")?.replaceWith(shown);
  }
}

async function explain() {
  const mine = ++asking;
  complain("");
  let sent;
  let whole;
  try {
    let text;
    [text, whole] = request();
    sent = JSON.stringify({ path: path.value.trim(), headers: headerPairs(), body: text });
  } catch (error) {
    complain(error.message);
    return;
  }
  answer.setAttribute("aria-busy", "true");
  go.setAttribute("aria-disabled", "true");
  try {
    const response = await fetch("/playground/explain", { method: "POST", headers: { "content-type": "application/json", accept: "text/html" }, body: sent });
    const text = await response.text();
    if (mine !== asking) return;
    if (!(response.headers.get("content-type") ?? "").startsWith("text/html")) {
      complain(WORDS[response.status] ?? `It was not explained (${response.status}).`);
      return;
    }
    answer.innerHTML = text;
    showThumbs(whole);
    wake(answer);
    said.textContent = answer.querySelector("h2")?.textContent ?? "";
    if (matchMedia("(max-width: 60rem)").matches) answer.scrollIntoView({ block: "start" });
  } catch {
    complain("Pointsman is not reachable.");
  } finally {
    if (mine === asking) {
      answer.setAttribute("aria-busy", "false");
      go.removeAttribute("aria-disabled");
    }
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  explain();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    explain();
  }
});
body.addEventListener("input", measure);
measure();
