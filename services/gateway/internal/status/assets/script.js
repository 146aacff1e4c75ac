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
  main.classList.toggle("filtered", text !== "");
  for (const element of main.querySelectorAll("[data-text]")) {
    element.hidden = !element.dataset.text.toLowerCase().includes(text);
  }
}

// patch changes an element into another one. What is equal stays untouched, and with it selected text, the focus, the
// scroll position, open pools and checked boxes.
function patch(element, next) {
  for (const { name } of [...element.attributes]) {
    if (name !== "open" && !next.hasAttribute(name)) {
      element.removeAttribute(name);
    }
  }
  for (const { name, value } of next.attributes) {
    if (name !== "open" && element.getAttribute(name) !== value) {
      element.setAttribute(name, value);
    }
  }
  patchChildren(element, next);
}

// patchChildren gives an element the children of another one. Children with an id are found by it, others by position.
function patchChildren(element, next) {
  const known = new Map([...element.children].map((child) => [child.id, child]));
  let at = element.firstChild;
  for (const wanted of [...next.childNodes]) {
    const child = wanted.id ? known.get(wanted.id) : at;
    known.delete(wanted.id); // an id that occurs twice must not take the place of the first one
    if (!child || child.nodeName !== wanted.nodeName || (child.id || "") !== (wanted.id || "")) {
      element.insertBefore(wanted, at);
      continue;
    }
    if (child !== at) {
      element.insertBefore(child, at);
    } else {
      at = at.nextSibling;
    }
    if (child.nodeType !== Node.ELEMENT_NODE) {
      if (child.data !== wanted.data) {
        child.data = wanted.data;
      }
    } else if (!child.isEqualNode(wanted)) {
      patch(child, wanted);
    }
  }
  while (at) {
    const rest = at.nextSibling;
    at.remove();
    at = rest;
  }
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
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    document.title = next.title;
    patchChildren(main, next.getElementById("main"));
    applyFilter();
    main.dataset.refreshed = Date.now();
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
