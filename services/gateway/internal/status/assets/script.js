"use strict";
// Refreshes the page every two seconds while it is visible, and filters it by the names of functions.
const main = document.getElementById("main");
const filter = document.getElementById("filter");
const pause = document.getElementById("pause");
const state = document.getElementById("state");
const interval = 2000;
const timeout = 10000;
let paused = false;
let busy = false;

function applyFilter() {
  const text = filter.value.toLowerCase();
  for (const element of main.querySelectorAll("[data-text]")) {
    element.hidden = !element.dataset.text.toLowerCase().includes(text);
  }
}

// replace shows the main part of another page. Pools that the user closed stay closed.
function replace(html) {
  const next = new DOMParser().parseFromString(html, "text/html").getElementById("main");
  const closed = new Set([...main.querySelectorAll("details:not([open])")].map((d) => d.id));
  for (const details of next.querySelectorAll("details")) {
    details.open = !closed.has(details.id);
  }
  const focused = document.activeElement?.closest?.("details")?.id;
  main.replaceChildren(...next.childNodes);
  if (focused) {
    document.getElementById(focused)?.querySelector("summary")?.focus({ preventScroll: true });
  }
  applyFilter();
}

async function refresh() {
  if (busy) {
    return;
  }
  busy = true;
  try {
    const response = await fetch("./", { signal: AbortSignal.timeout(timeout) });
    if (!response.ok) {
      throw new Error(`status ${response.status}`);
    }
    replace(await response.text());
    state.textContent = "";
    state.className = "";
  } catch (error) {
    state.textContent = `not refreshed: ${error.message}`;
    state.className = "bad";
  } finally {
    busy = false;
  }
}

function togglePause() {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  state.textContent = paused ? "paused" : "";
}

pause.addEventListener("click", togglePause);
document.getElementById("refresh").addEventListener("click", refresh);
filter.addEventListener("input", applyFilter);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.target === filter) {
    if (event.key === "Escape") {
      filter.value = "";
      applyFilter();
      filter.blur();
    }
    return;
  }
  switch (event.key) {
    case "/":
      event.preventDefault();
      filter.focus();
      break;
    case "p":
      togglePause();
      break;
    case "r":
      refresh();
      break;
  }
});
setInterval(() => {
  if (!paused && !document.hidden) {
    refresh();
  }
}, interval);
