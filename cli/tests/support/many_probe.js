// What the test of a page with many runs asks of it, put at the end of its body.
(function () {
  "use strict";
  const found = {}, opened = [], usual = window.open;
  const all = document.querySelectorAll('#plot svg [aria-label="dot"]')[0];
  const dot = all.querySelectorAll("circle")[5], box = dot.getBoundingClientRect();
  found.dots = all.querySelectorAll("circle").length;
  found.links = all.querySelectorAll("a").length;
  window.open = (address) => opened.push(address);
  dot.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  document.querySelector("#plot svg").dispatchEvent(new MouseEvent("click", { bubbles: true }));
  window.open = usual;
  const at = { bubbles: true, clientX: box.x + 2, clientY: box.y + 2, pointerType: "mouse" };
  dot.dispatchEvent(new PointerEvent("pointerenter", { ...at, bubbles: false }));
  dot.dispatchEvent(new PointerEvent("pointermove", at));
  setTimeout(() => {
    found.tip = document.querySelector('#plot [aria-label="tip"]')?.textContent;
    Object.assign(found, { opened, count: $("count").textContent });
    const text = JSON.stringify(found);
    document.body.append(Object.assign(document.createElement("pre"), { id: "probe", textContent: text }));
  }, 100);
})();
