"use strict";
// Makes elements, formats numbers, and tells screen readers what happened. Text is only ever set as text.
const elements = (() => {
  const byId = (id) => document.getElementById(id);

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const svg = (name, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

  const short = (text, length = 14) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
  const number = (value) => value.toLocaleString("en");

  function percent(part) {
    if (part > 0 && part < 0.001) return "less than 0.1 %";
    if (part < 1 && part > 0.999) return "more than 99.9 %";
    return `${+(100 * part).toFixed(1)} %`;
  }

  const say = (text) => { byId("status").textContent = text; };

  return { byId, fill, svg, html, short, number, percent, say };
})();
