"use strict";

{% include "sort.js" %}

// A box that is narrower than what it holds says so.
const boxes = new ResizeObserver((changed) => changed.forEach(({ target }) => {
  target.classList.toggle("more", target.scrollWidth > target.clientWidth);
}));
document.querySelectorAll(".scroll, figure.wide").forEach((box) => boxes.observe(box));

// Filter: rows whose words hold all that was typed; tables, figures and rows of one protocol.
const filter = document.getElementById("filter");
const protocol = document.getElementById("protocol");
const protocols = [...protocol.options].map((option) => option.value);

function applyFilter() {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  document.querySelectorAll("table.results tbody tr:not(.last)").forEach((row) => {
    const cells = [...row.querySelectorAll("th")].map((cell) => cell.textContent);
    const words = cells.join(" ").toLowerCase();
    const other = cells.some((text) => protocols.includes(text) && text !== protocol.value);
    row.hidden = !wanted.every((word) => words.includes(word)) || (protocol.value !== "" && other);
  });
  document.querySelectorAll("[data-protocol]").forEach((part) => {
    part.hidden = protocol.value !== "" && part.dataset.protocol !== protocol.value;
  });
}
filter.addEventListener("input", applyFilter);
protocol.addEventListener("change", applyFilter);

// A page for each data set: one at a time, chosen by the address or the list.
const chooser = document.getElementById("chooser");
const pages = [...document.querySelectorAll("section.set")];

function showSet() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  const chosen = pages.find((page) => page.id === wanted);
  document.body.classList.toggle("one-set", Boolean(chosen));
  pages.forEach((page) => { page.hidden = page !== chosen; });
  chooser.value = chosen ? chosen.id : "";
  if (chosen) window.scrollTo(0, 0);
  else if (wanted) document.getElementById(wanted)?.scrollIntoView();
}
chooser.addEventListener("change", () => { location.hash = chooser.value; });
window.addEventListener("hashchange", showSet);
applyFilter(); // a browser may keep what was typed before a reload
showSet();
