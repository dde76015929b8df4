// Before the first paint: the colours that were chosen here last, if any were.
"use strict";
try {
  const kept = localStorage.getItem("pointsman-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // Storage is forbidden: the system's colours it is.
}
