// What every view has: the choice of colours, and buttons that copy.

const root = document.documentElement;
const button = document.getElementById("theme");
const WORDS = { auto: "as the system has them", light: "light", dark: "dark" };
const NEXT = { auto: "light", light: "dark", dark: "auto" };

function theme() {
  return root.dataset.theme ?? "auto";
}

function say() {
  button.setAttribute("aria-label", `Colours: ${WORDS[theme()]}`);
  button.title = `Colours: ${WORDS[theme()]}`;
}

button.hidden = false;
say();
button.addEventListener("click", () => {
  const chosen = NEXT[theme()];
  if (chosen === "auto") delete root.dataset.theme;
  else root.dataset.theme = chosen;
  try {
    localStorage.setItem("pointsman-theme", chosen);
  } catch {
    // It holds for this view, then.
  }
  say();
});

/** Shows the copy buttons in `within`; they need a script, and so are hidden without one. */
export function wake(within) {
  for (const each of within.querySelectorAll("[data-copy]")) each.hidden = false;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers have no clipboard for pages that came over plain HTTP from afar.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

document.addEventListener("click", async (event) => {
  const pressed = event.target.closest("[data-copy]");
  if (!pressed) return;
  const word = pressed.querySelector("span");
  try {
    await copy(pressed.parentElement.querySelector("pre").textContent);
    word.textContent = "Copied";
  } catch {
    word.textContent = "Could not copy";
  }
  setTimeout(() => (word.textContent = "Copy"), 2000);
});

wake(document);
