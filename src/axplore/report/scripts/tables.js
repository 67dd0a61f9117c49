"use strict";
// Tables: a click on a heading sorts, and a click on a state chooses it.
(() => {
  const { byId, say } = elements;

  function sortBy(heading) {
    const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const rows = [...body.rows].map((row) => [key(row), row]);
    const isNumeric = rows.every(([value]) => value !== "" && Number.isFinite(+value));
    rows.sort(isNumeric ? (a, b) => +a[0] - +b[0] : (a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
    if (descending) rows.reverse();
    body.append(...rows.map(([, row]) => row));
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    say(`Sorted by ${heading.textContent}, ${descending ? "descending" : "ascending"}.`);
  }

  document.addEventListener("click", (event) => {
    const goal = event.target.closest("button.goal"), sort = event.target.closest("button.sort");
    if (goal) {
      selection.choose(+goal.dataset.index);
      byId("panel").focus();
      byId("panel").scrollIntoView({ block: "nearest" });
    }
    if (sort) sortBy(sort.closest("th"));
  });

  selection.onChange((index) => {
    for (const row of document.querySelectorAll("tr.chosen")) row.classList.remove("chosen");
    document.querySelector(`button.goal[data-index="${index}"]`)?.closest("tr").classList.add("chosen");
  });
})();
