"use strict";
// States as cells: the cells themselves, the short ways that join them, and the walls between them.
const grid = (() => {
  const { svg, short } = elements;
  const { content, labels, isMember } = atlas;
  const { layout } = content;
  const { layers, spots, nodes } = canvas;
  const size = layout.size;
  /** The size of names on narrow screens, and that below which names of cells are left out, in pixels. */
  const NAME_PIXELS = 11, LEAST_PIXELS = 5;

  const square = (half) => `M${-half} ${-half}H${half}V${half}H${-half}Z`;

  function drawEmptyCells() {
    const taken = new Set(layout.drawn.map((_, i) => `${layout.x[i]} ${layout.y[i]}`));
    const [rows, columns] = layout.cells;
    const left = layout.width / 2 - columns * size;
    const unseen = "never seen, or not a state." + (content.unseenLower === null ? "" :
      ` States never seen take at least ${content.unseenLower} expected steps.`);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const x = left + 2 * column * size, y = layout.margin + 2 * row * size;
        if (taken.has(`${+(x + size).toFixed(2)} ${+(y + size).toFixed(2)}`)) continue;
        layers.ground.append(svg("rect", { class: "empty", x: x + 1, y: y + 1, width: 2 * size - 2, height: 2 * size - 2 },
          svg("title", {}, unseen)));
      }
    }
  }

  /** The tree of short ways around the initial state: bridges between neighbours. */
  function drawTree() {
    for (const [index, to] of spots) {
      const from = spots.get(content.waysIn[index]);
      if (index === 0 || !from || Math.hypot(to.x - from.x, to.y - from.y) > 2.01 * size) continue;
      layers.tree.append(svg("line", { class: isMember(index) ? "branch" : "branch frontier", "data-index": index,
        x1: from.x, y1: from.y, x2: to.x, y2: to.y }));
    }
    layers.tree.style.strokeWidth = `${0.8 * size}px`;
  }

  function drawWalls() {
    const width = Math.max(1.5, 0.12 * size);
    for (const [x1, y1, x2, y2] of layout.walls) layers.walls.append(svg("line", { class: "wall", x1, y1, x2, y2, "stroke-width": width }));
  }

  function drawCell(index) {
    const half = size - Math.max(0.5, size * 0.09);
    canvas.node(index, spots.get(index), square(half), square(0.93 * half), ...canvas.marks(atlas.statusOf(index), half, isMember(index)));
  }

  function drawNames() {
    layers.names.replaceChildren();
    const { view } = canvas;
    const visible = layout.drawn.filter((index) => {
      const { x, y } = spots.get(index);
      return x >= view.x && x <= view.x + view.width && y >= view.y && y <= view.y + view.height && !nodes.get(index).matches(".unmet");
    });
    if (visible.length <= content.limits.names) for (const index of visible) drawName(index, canvas.pixel());
  }

  function drawName(index, pixel) {
    const { x, y } = spots.get(index), node = nodes.get(index);
    const ink = isMember(index) && !node.classList.contains("pending") ? node.ink : "var(--soft)";
    const text = (words, left, top, font, anchor) => {
      const element = svg("text", { class: "name", x: left, y: top, "font-size": font }, words);
      Object.assign(element.style, { fill: ink, textAnchor: anchor, opacity: node.classList.contains("beyond") ? 0.35 : 1 });
      layers.names.append(element);
    };
    const name = short(labels[index], 10);
    const font = Math.min(Math.max(0.36 * size, NAME_PIXELS * pixel), (3 * size) / name.length, 0.55 * size);
    if (font >= LEAST_PIXELS * pixel) text(name, x - 0.85 * size, y - 0.85 * size + 0.8 * font, font, "start");
    if (isMember(index) && selection.chosen === null && !content.refuted) text(content.shownSteps[index].toFixed(1), x, y + 0.35 * size, 0.62 * size, "middle");
  }

  function draw() {
    layout.drawn.forEach((index, i) => spots.set(index, { x: layout.x[i], y: layout.y[i], half: size }));
    drawEmptyCells();
    drawTree();
    layout.drawn.forEach(drawCell);
    drawWalls();
    canvas.setSize(layout.width, layout.height, false);
  }

  return { draw, drawNames, show: () => {}, size };
})();
