// Shows the paths through one box of the policy's graph: all that it rests on, and all that follows from it.

const graph = document.getElementById("graph");

if (graph) {
  const lines = [...graph.querySelectorAll(".g-line")];
  const boxes = new Map([...graph.querySelectorAll(".g-box")].map((box) => [box.dataset.node, box]));
  let held = null;
  let shown = null;

  const reach = (from, near, far) => {
    const met = new Set([from]);
    const found = new Set();
    for (const node of met) {
      for (const line of lines) {
        if (line.dataset[near] !== node) continue;
        found.add(line);
        met.add(line.dataset[far]);
      }
    }
    return [met, found];
  };

  const light = (node) => {
    graph.classList.toggle("dim", node !== null);
    const [after, onward] = node === null ? [new Set(), new Set()] : reach(node, "start", "end");
    const [before, back] = node === null ? [new Set(), new Set()] : reach(node, "end", "start");
    for (const [name, box] of boxes) box.classList.toggle("lit", after.has(name) || before.has(name));
    for (const line of lines) line.classList.toggle("lit", onward.has(line) || back.has(line));
  };

  const show = (node) => {
    if (node !== shown) light((shown = node));
  };

  const boxOf = (target) => target.closest?.(".g-box")?.dataset.node ?? null;

  // Not "pointerover": that comes as well when what is focused scrolls the graph away under a pointer that rests.
  graph.addEventListener("pointermove", (event) => show(boxOf(event.target) ?? held));
  graph.addEventListener("pointerleave", () => show(held));
  graph.addEventListener("focusin", (event) => show((held = boxOf(event.target))));
  graph.addEventListener("focusout", () => show((held = null)));
  graph.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.target.blur();
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step || !held) return;
    const order = [...boxes.values()];
    order[order.indexOf(boxes.get(held)) + step]?.focus();
    event.preventDefault();
  });
}
