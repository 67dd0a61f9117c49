"use strict";
// Which states of a graph are shown, and where: in layers from the initial state, placed by dagre. It runs in the page
// and, so that every picture is the same, in Python; it knows numbers and texts only.
const layering = (() => {
  /** Sizes in units of the map, in which names are 13 high. */
  const CHARACTER = 7.3, LINE = 16, PADDING = 11, STEPS = 13, PICTURE = { width: 96, height: 72 };
  const LABEL = { character: 6, height: 15, longest: 30 };
  const LONGEST_LINE = 24, MOST_LINES = 3, MARGIN = 24, GAP = 12;
  /** From so many edges into the initial state on, they are marks on their states; from so many leaves on, a block. */
  const MOST_RETURNS = 3, FEWEST_IN_BLOCK = 6;

  const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

  /** The lines of a name, broken between its parts; what does not fit is cut. */
  function lines(name) {
    const words = name.split(/(?<=\s·)\s|(?<=[,;→])\s|\s/), broken = [""];
    for (const word of words) {
      const last = broken[broken.length - 1];
      if (last && last.length + word.length + 1 > LONGEST_LINE) broken.push(word);
      else broken[broken.length - 1] = last ? `${last} ${word}` : word;
    }
    const shown = broken.slice(0, MOST_LINES).map((line) => cut(line, LONGEST_LINE));
    if (broken.length > MOST_LINES) shown[MOST_LINES - 1] = cut(`${shown[MOST_LINES - 1]} …`, LONGEST_LINE);
    return shown;
  }

  function sizeOf(graph, index) {
    const named = lines(graph.labels[index]), longest = Math.max(...named.map((line) => line.length), 4);
    const isPictured = graph.pictured.includes(index);
    return {
      width: Math.max(longest * CHARACTER, isPictured ? PICTURE.width : 0, graph.leastWidth - 2 * PADDING) + 2 * PADDING,
      height: named.length * LINE + STEPS + PADDING + (isPictured ? PICTURE.height + 4 : 0),
    };
  }

  /** The states below each state in the tree of short ways, and their depths. Parents come before their children. */
  function tree(graph) {
    const n = graph.labels.length;
    const children = Array.from({ length: n }, () => []), depths = new Array(n).fill(0);
    for (let index = 1; index < n; index++) {
      children[graph.parents[index]].push(index);
      depths[index] = depths[graph.parents[index]] + 1;
    }
    return { children, depths };
  }

  /** The states that are shown: all if they are few, otherwise the first ones of the atlas; and those asked for. */
  function visibleStates(graph, wanted, { depths }) {
    const n = graph.labels.length, order = Array.from({ length: n }, (_, index) => index);
    const isOutside = (index) => +(index >= graph.members);
    order.sort((a, b) => isOutside(a) - isOutside(b) || depths[a] - depths[b] || a - b);
    const shown = new Set(order.slice(0, n <= graph.limits.whole ? n : graph.limits.single));
    for (let index of wanted) {
      for (; !shown.has(index); index = graph.parents[index]) shown.add(index);
    }
    return shown;
  }

  /** Of every shown state with hidden ones behind it, their number. */
  function clustersOf(graph, shown) {
    const hidden = new Map();
    for (let index = graph.labels.length - 1; index > 0; index--) {
      if (shown.has(index)) continue;
      let anchor = graph.parents[index];
      while (!shown.has(anchor)) anchor = graph.parents[anchor];
      hidden.set(anchor, (hidden.get(anchor) ?? 0) + 1);
    }
    return hidden;
  }

  /** What is to be shown if a cluster is opened: the next states behind its anchor. */
  function behind(graph, anchor, wanted) {
    const below = tree(graph), shown = visibleStates(graph, wanted, below);
    return below.children[anchor].filter((index) => !shown.has(index)).slice(0, graph.limits.more);
  }

  /** The edges between shown states: all if they are few, otherwise the short ways; and how many are not drawn. */
  function edgesBetween(graph, shown) {
    const edges = [], returns = [], loops = [];
    graph.edges.source.forEach((source, i) => {
      const target = graph.edges.target[i];
      if (!shown.has(source) || !shown.has(target)) return;
      const edge = { source, target, text: graph.texts[graph.edges.text[i]], share: graph.edges.share[i] };
      (source === target ? loops : target === 0 ? returns : edges).push({ ...edge, isShort: target !== 0 && graph.parents[target] === source });
    });
    const isCrowded = returns.length > MOST_RETURNS;
    const all = isCrowded ? edges : [...edges, ...returns];
    const room = graph.limits.edges + (graph.limits.edgesPerTenStates * shown.size) / 10;
    const drawn = all.length <= room ? all : all.filter((edge) => edge.isShort);
    return { drawn, undrawn: all.length - drawn.length, returns: isCrowded ? returns : [], loops };
  }

  /** Leaves behind one state, if they are many: they stand in a block. Returns the block of each of them. */
  function blocksOf(graph, shown, drawn, clusters) {
    const degrees = new Map(), leaves = new Map(), blocks = new Map();
    for (const { source, target } of drawn) {
      for (const index of [source, target]) degrees.set(index, (degrees.get(index) ?? 0) + 1);
    }
    for (const { source, target, isShort } of drawn) {
      if (!isShort || degrees.get(target) > 1 || clusters.has(target)) continue;
      leaves.set(source, [...(leaves.get(source) ?? []), target]);
    }
    for (const [parent, indices] of leaves) {
      if (indices.length < FEWEST_IN_BLOCK) continue;
      const sizes = indices.map((index) => sizeOf(graph, index));
      const width = Math.max(...sizes.map((size) => size.width)) + GAP, height = Math.max(...sizes.map((size) => size.height)) + GAP;
      const columns = Math.max(1, Math.round(Math.sqrt((indices.length * height) / width)));
      const rows = Math.ceil(indices.length / columns);
      blocks.set(parent, { indices, columns, cell: { width, height }, width: columns * width - GAP, height: rows * height - GAP });
    }
    return blocks;
  }

  function labelSize(text) {
    const shown = cut(text, LABEL.longest);
    return { width: (shown.length + 2) * LABEL.character + 6, height: LABEL.height, labelpos: "c" };
  }

  function placed(graph, parts, rankdir) {
    const { shown, drawn, clusters, blocks, depths } = parts;
    const inBlock = new Map([...blocks].flatMap(([parent, { indices }]) => indices.map((index) => [index, `b${parent}`])));
    const g = new dagre.graphlib.Graph();
    g.setGraph({ rankdir, nodesep: 16, edgesep: 12, ranksep: 34, marginx: MARGIN, marginy: MARGIN });
    for (const index of [...shown].sort((a, b) => depths[a] - depths[b] || a - b)) {
      if (!inBlock.has(index)) g.setNode(`${index}`, sizeOf(graph, index));
    }
    for (const [parent, { width, height, indices }] of blocks) {
      g.setNode(`b${parent}`, { width, height });
      const texts = new Set(drawn.filter(({ target }) => inBlock.get(target) === `b${parent}`).map(({ text }) => text));
      g.setEdge(`${parent}`, `b${parent}`, { text: texts.size === 1 ? [...texts][0] : `${indices.length} states`, weight: 4 });
    }
    for (const [anchor, count] of clusters) {
      g.setNode(`c${anchor}`, { width: 24 + 8 * `${count}`.length, height: 28 });
      g.setEdge(`${anchor}`, `c${anchor}`, { text: "", weight: 2 });
    }
    for (const edge of drawn) {
      if (inBlock.has(edge.target)) continue;
      // Layers go by the depth in the tree of short ways, so an edge that leads back is laid out the other way round.
      const isForward = depths[edge.source] < depths[edge.target] || (depths[edge.source] === depths[edge.target] && edge.source < edge.target);
      const ends = [`${edge.source}`, `${edge.target}`];
      const known = isForward ? undefined : g.edge(ends[1], ends[0]);
      if (known) known.opposite = edge; // there and back share one way, so that neither covers the other
      else g.setEdge(...(isForward ? ends : ends.reverse()), { text: edge.text, edge, isForward, weight: edge.isShort ? 4 : 1 });
    }
    for (const id of g.edges()) {
      const edge = g.edge(id), texts = [edge.text, edge.opposite?.text ?? ""].filter(Boolean);
      if (!texts.length) continue;
      const sizes = texts.map(labelSize);
      Object.assign(edge, { width: Math.max(...sizes.map(({ width }) => width)), height: texts.length * LABEL.height, labelpos: "c" });
    }
    dagre.layout(g);
    return { g, inBlock };
  }

  const round = (value) => Math.round(10 * value) / 10;

  /** A path through points, rounded at each of them. */
  function path(points) {
    const at = ([x, y]) => `${round(x)} ${round(y)}`, half = (a, b) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    let text = `M${at(points[0])}`;
    for (let i = 1; i < points.length - 1; i++) text += `${i === 1 ? `L${at(half(points[0], points[1]))}` : ""}Q${at(points[i])} ${at(half(points[i], points[i + 1]))}`;
    return `${text}L${at(points[points.length - 1])}`;
  }

  /** The corners of the head of an arrow at the end of a line. */
  function head(points, length = 9) {
    const [x, y] = points[points.length - 1], [fx, fy] = points[points.length - 2];
    const distance = Math.hypot(x - fx, y - fy) || 1, [dx, dy] = [(x - fx) / distance, (y - fy) / distance];
    const [bx, by] = [x - dx * length, y - dy * length];
    return [[x, y], [bx - dy * length * 0.42, by + dx * length * 0.42], [bx + dy * length * 0.42, by - dx * length * 0.42]];
  }

  function drawnEdge(edge, points, label) {
    const corners = head(points);
    return { source: edge.source, target: edge.target, text: edge.text, share: edge.share, isShort: edge.isShort,
      points: points.map((point) => point.map(round)), label: label.map(round), path: path(points),
      head: corners.map((point) => point.map(round)) };
  }

  function result({ g, inBlock }, graph, parts) {
    const { drawn, clusters, blocks, undrawn, returns, loops } = parts;
    const marks = g.graph().rankdir === "TB" ? [" ↓", " ↑"] : [" →", " ←"];
    const box = (id, more) => { const { x, y, width, height } = g.node(id); return { ...more, x: round(x), y: round(y), width: round(width), height: round(height) }; };
    const nodes = [...parts.shown].filter((index) => !inBlock.has(index)).map((index) => box(`${index}`, { index, lines: lines(graph.labels[index]) }));
    const edges = [];
    for (const [parent, { indices, columns, cell }] of blocks) {
      const { x, y, width, height } = g.node(`b${parent}`);
      indices.forEach((index, i) => {
        const size = sizeOf(graph, index);
        nodes.push({ index, lines: lines(graph.labels[index]), x: round(x - width / 2 + (i % columns) * cell.width + (cell.width - GAP) / 2), y: round(y - height / 2 + Math.floor(i / columns) * cell.height + (cell.height - GAP) / 2),
          width: round(size.width), height: round(size.height) });
      });
    }
    for (const id of g.edges()) {
      const { points, text, edge, isForward, opposite, x, y } = g.edge(id);
      const way = points.map((point) => [point.x, point.y]), middle = way[way.length >> 1];
      const label = x === undefined ? middle : [x, y];
      if (!edge) {
        edges.push(drawnEdge({ source: +id.v, target: null, text, share: 1, isShort: true }, way, label));
        continue;
      }
      const up = opposite ? LABEL.height / 2 : 0;
      const [there, back] = opposite ? marks : ["", ""];
      edges.push(drawnEdge({ ...edge, text: edge.text + there }, isForward ? way : [...way].reverse(), [label[0], label[1] - up]));
      if (opposite) edges.push(drawnEdge({ ...opposite, text: opposite.text + back }, [...way].reverse(), [label[0], label[1] + up]));
    }
    const { width, height } = g.graph();
    return { kind: "graph", width: round(width), height: round(height), nodes, edges, undrawn,
      blocks: [...blocks.keys()].map((parent) => box(`b${parent}`, { parent, size: blocks.get(parent).indices.length })),
      clusters: [...clusters].map(([anchor, size]) => box(`c${anchor}`, { anchor, size })),
      returns: returns.map(({ source, text }) => ({ source, text })), loops: loops.map(({ source, text }) => ({ source, text })), edgesInBlocks: drawn.filter(({ target }) => inBlock.has(target)) };
  }

  /** Lays out what is shown of a graph, left to right or downwards, whichever fits better into a frame. */
  function view(graph, wanted, frame) {
    const below = tree(graph), shown = visibleStates(graph, wanted, below), clusters = clustersOf(graph, shown);
    const edges = edgesBetween(graph, shown), blocks = blocksOf(graph, shown, edges.drawn, clusters);
    const parts = { shown, clusters, blocks, depths: below.depths, ...edges };
    const fit = ({ width, height }) => Math.min(frame.width / width, frame.height / height);
    const first = result(placed(graph, parts, frame.width >= frame.height ? "LR" : "TB"), graph, parts);
    if (fit(first) >= 0.9) return first;
    const second = result(placed(graph, parts, frame.width >= frame.height ? "TB" : "LR"), graph, parts);
    return fit(second) > 1.25 * fit(first) ? second : first;
  }

  return { view, behind, lines, path, head, cut, LABEL, LINE, PADDING, PICTURE };
})();
