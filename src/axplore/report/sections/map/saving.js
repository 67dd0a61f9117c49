"use strict";
// Saves what the map shows as a picture of its own: with the styles that it has on the page, and nothing else.
const saving = (() => {
  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linecap", "stroke-linejoin",
    "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "display"];
  /** Pixels of a picture per pixel of the screen. */
  const SHARPNESS = 2;

  /** The text of an SVG file with what the map shows. */
  function svgText(map) {
    const copy = map.cloneNode(true), from = [map, ...map.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      to[i].setAttribute("style", KEPT.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
      for (const name of ["class", "tabindex", "role", "aria-pressed", "aria-label"]) to[i].removeAttribute(name);
    });
    const [x, y, width, height] = map.getAttribute("viewBox").split(" ").map(Number);
    const ground = elements.svg("rect", { x, y, width, height, fill: getComputedStyle(map).backgroundColor });
    copy.prepend(ground);
    const scale = map.clientWidth / width;
    elements.fill(copy, { xmlns: "http://www.w3.org/2000/svg", width: Math.round(width * scale), height: Math.round(height * scale) }, []);
    return new XMLSerializer().serializeToString(copy);
  }

  function save(blob, name) {
    const link = elements.html("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    elements.say(`Saved ${name}.`);
  }

  const saveSvg = (map) => save(new Blob([svgText(map)], { type: "image/svg+xml" }), "map.svg");

  /** Returns the picture as the bytes of a PNG. */
  async function png(map) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(map))}`;
    await image.decode();
    const paper = elements.html("canvas", { width: image.width * SHARPNESS, height: image.height * SHARPNESS });
    paper.getContext("2d").drawImage(image, 0, 0, paper.width, paper.height);
    return new Promise((resolve) => paper.toBlob(resolve, "image/png"));
  }

  const savePng = async (map) => save(await png(map), "map.png");

  return { svgText, png, saveSvg, savePng };
})();
