
"use strict";
const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

{% include "sort.js" %}

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

{% if report.explorer %}
{% include "explorer.js" %}
{% endif %}

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
