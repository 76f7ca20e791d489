
"use strict";
const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Sort: a click on a header orders the rows by it, a second click turns the order round; a cell without
// a number stays last either way.
function sortRows(table, column, header) {
  const down = header.getAttribute("aria-sort") === "ascending";
  all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const numbers = header.classList.contains("number");
  const key = (row) => {
    const cell = row.cells[column];
    return numbers ? Number(cell.dataset.sort ?? NaN) : cell.textContent.trim();
  };
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (!numbers) return (down ? -1 : 1) * x.localeCompare(y, "en", { numeric: true });
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return down ? y - x : x - y;
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
}
all("table.sortable").forEach((table) => [...table.tHead.rows[0].cells].forEach((header, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  button.addEventListener("click", () => sortRows(table, column, header));
  header.append(button);
}));

// The line below the table of models tells how far a model is from the best.
const told = document.querySelector("p.told");
if (told) {
  told.hidden = false;
  all("tr[data-told]").forEach((row) => {
    const tell = () => {
      all("tr.told").forEach((other) => other.classList.remove("told"));
      row.classList.add("told");
      told.textContent = row.dataset.told;
    };
    ["pointerenter", "focus", "click"].forEach((event) => row.addEventListener(event, tell));
  });
}

// One example row at a time.
const examples = all(".example");
const chooser = byId("example");
if (chooser) {
  byId("example-controls").hidden = examples.length < 2;
  const show = (i) => {
    chooser.selectedIndex = (i + examples.length) % examples.length;
    examples.forEach((part, j) => { part.hidden = j !== chooser.selectedIndex; });
  };
  chooser.addEventListener("change", () => show(chooser.selectedIndex));
  byId("example-before").addEventListener("click", () => show(chooser.selectedIndex - 1));
  byId("example-next").addEventListener("click", () => show(chooser.selectedIndex + 1));
  show(0);
}

// Findings by severity.
const severities = byId("severities");
if (severities) {
  const boxes = all("input", severities);
  const apply = () => all(".finding").forEach((part) => {
    part.hidden = !boxes.find((box) => box.dataset.severity === part.dataset.severity).checked;
  });
  severities.hidden = boxes.length < 2;
  boxes.forEach((box) => box.addEventListener("change", apply));
  apply(); // a browser may keep what was chosen before a reload
}

// Columns whose row holds all that was typed.
const filter = byId("column-filter");
if (filter) {
  byId("column-controls").hidden = false;
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    all("#table-columns tbody tr").forEach((row) => {
      const content = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => content.includes(word));
    });
  };
  filter.addEventListener("input", apply);
  apply();
}

// Copy the command.
const copy = byId("copy");
if (copy) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const command = byId("command");
    let done = true;
    try {
      await navigator.clipboard.writeText(command.textContent);
    } catch { // no clipboard here: select it, so that the keyboard can copy it
      getSelection().selectAllChildren(command);
      done = document.execCommand("copy");
    }
    copy.textContent = done ? "Copied" : "Press Ctrl-C";
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
}

// Paper has no folds.
let folded = [];
addEventListener("beforeprint", () => {
  folded = all("details:not([open])");
  folded.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
