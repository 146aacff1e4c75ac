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

// replace shows the main part of another page. Pools stay open or closed.
function replace(html) {
  const next = new DOMParser().parseFromString(html, "text/html").getElementById("main");
  for (const details of next.querySelectorAll("details")) {
    details.open = document.getElementById(details.id)?.open ?? details.open;
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
    showState();
  } catch (error) {
    showState(`not refreshed: ${error.message}`);
  } finally {
    busy = false;
  }
}

// showState shows a problem, or else whether the page is paused.
function showState(problem) {
  state.textContent = problem ?? (paused ? "paused" : "");
  state.className = problem ? "bad" : "";
}

function togglePause() {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  showState();
}

// togglePools closes all pools, or opens all if one is closed.
function togglePools() {
  const pools = [...main.querySelectorAll("details")];
  const open = pools.some((pool) => !pool.open);
  for (const pool of pools) {
    pool.open = open;
  }
}

pause.addEventListener("click", togglePause);
document.getElementById("refresh").addEventListener("click", refresh);
document.getElementById("toggle").addEventListener("click", togglePools);
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
    case "o":
      togglePools();
      break;
  }
});
setInterval(() => {
  if (!paused && !document.hidden) {
    refresh();
  }
}, interval);
