// Sort: a click on a header orders the rows by it, a second click turns the order round. Cells without a number, and rows
// of averages below all, stay last either way.
function sortRows(table, column, header) {
  const down = header.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  const numbers = rows.some((row) => "sort" in row.cells[column].dataset);
  const key = (row) => numbers ? Number(row.cells[column].dataset.sort ?? NaN) : row.cells[column].textContent.trim();
  rows.sort((a, b) => {
    const [x, y, last] = [key(a), key(b), a.classList.contains("last") - b.classList.contains("last")];
    if (last) return last;
    if (!numbers) return (down ? -1 : 1) * x.localeCompare(y, "en", { numeric: true });
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return down ? y - x : x - y;
  });
  table.tBodies[0].append(...rows);
}
document.querySelectorAll("table.sortable").forEach((table) => [...table.tHead.rows[0].cells].forEach((header, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  button.addEventListener("click", () => sortRows(table, column, header));
  header.append(button);
}));
