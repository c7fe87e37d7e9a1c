// What the test of the pages asks of one, put at the end of its body. The answer goes to the page around it.
(function () {
  "use strict";
  var refused = 0, found = {};
  addEventListener("securitypolicyviolation", function () { refused++; });
  var all = function (what, where) { return Array.prototype.slice.call((where || document).querySelectorAll(what)); };
  var seen = function (part) { return part.getClientRects().length > 0; };
  var root = document.documentElement;

  found.width = root.clientWidth;
  found.overflow = root.scrollWidth - root.clientWidth;
  // What sticks out, unless it scrolls within its own frame.
  found.out = all("body *").filter(function (part) {
    return seen(part) && !part.closest(".scroll table") && part.getBoundingClientRect().right > root.clientWidth + 0.5;
  }).map(function (part) { return part.outerHTML.slice(0, 80); });
  found.background = getComputedStyle(document.body).backgroundColor;
  found.ink = getComputedStyle(document.querySelector("svg text")).fill;
  found.titles = all("svg title").length;
  found.smallest = Math.min.apply(null, all("svg text").filter(function (t) { return seen(t) && t.textContent.trim(); }).map(function (t) {
    var box = t.getBoundingClientRect();
    // The letters of a rotated text stand on their sides.
    return /rotate\((-?90|270)/.test(t.getAttribute("transform") || "") ? box.width : box.height;
  }));

  // A component goes and comes back, and the others stay.
  found.legends = all("figure").filter(function (f) { return f.querySelector(".legend"); }).map(function (figure) {
    var button = all(".legend button", figure)[1];
    var counts = function () {
      return [0, 1].map(function (s) { return all('svg [data-s="' + s + '"]', figure).filter(seen).length; });
    };
    var before = counts();
    button.click();
    var off = counts(), pressed = button.getAttribute("aria-pressed");
    button.click();
    return { before: before, off: off, pressed: pressed, after: counts() };
  });

  // Values come with the pointer and with the keyboard.
  var tip = document.getElementById("tip");
  var svg = all("figure svg").filter(seen)[0], marks = all(".m", svg);
  marks[1].dispatchEvent(new MouseEvent("mousemove", { clientX: 5, clientY: 5, bubbles: true }));
  found.pointed = tip.hidden ? null : tip.textContent;
  marks[1].dispatchEvent(new MouseEvent("mouseleave"));
  found.left = tip.hidden;
  marks[0].focus();
  found.focused = tip.hidden ? null : tip.textContent;
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  found.next = tip.hidden ? null : tip.textContent;
  var box = tip.getBoundingClientRect();
  found.tip_inside = box.left >= 0 && box.right <= root.clientWidth;
  document.activeElement.blur();
  found.stops = all("figure svg").every(function (svg) {
    return !svg.querySelector(".m") || all('.m[tabindex="0"]', svg).length === 1;
  });

  // Up, down, and as it was.
  var table = document.querySelector("table"), column = all("th", table).findIndex(function (th) { return th.className === "n"; });
  var read = function () { return all("tbody tr", table).map(function (row) { return Number(row.cells[column].dataset.v); }); };
  found.sorted = { given: read() };
  ["up", "down", "again"].forEach(function (turn) {
    all("th button", table)[column].click();
    found.sorted[turn] = read();
  });

  // Nothing was fetched, and what tries to is refused.
  found.resources = performance.getEntriesByType("resource").length;
  found.refused_before = refused;
  var image = new Image();
  image.src = "http://HOST/image";
  fetch("http://HOST/fetch").catch(function () {}).finally(function () {
    setTimeout(function () {
      found.refused = refused;
      parent.postMessage(JSON.stringify(found), "*");
    }, 50);
  });
})();
