
// Values on hover and focus, components that can be switched off, tables that can be sorted. Without it the page says the same.
(function () {
  "use strict";
  document.documentElement.classList.add("on");
  var all = function (what, where) { return Array.prototype.slice.call((where || document).querySelectorAll(what)); };

  var tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.appendChild(tip);
  function hide() { tip.hidden = true; }
  function show(mark, x, y) {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    var box = tip.getBoundingClientRect(), edge = 8;
    tip.style.left = Math.max(edge, Math.min(x + 12, document.documentElement.clientWidth - box.width - edge)) + "px";
    tip.style.top = (y - box.height - 10 < edge ? y + 16 : y - box.height - 10) + "px";
  }
  function beside(mark) {
    var box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, Math.max(box.top, 0));
  }

  // One stop of the Tab key a picture; arrow keys go from mark to mark.
  all("figure svg").forEach(function (svg) {
    var marks = all(".m", svg);
    svg.setAttribute("role", "group");
    marks.forEach(function (mark, i) {
      var title = mark.querySelector("title");
      mark.dataset.tip = title.textContent;
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", title.textContent);
      mark.setAttribute("tabindex", i ? "-1" : "0");
      title.remove();
      mark.addEventListener("mousemove", function (e) { show(mark, e.clientX, e.clientY); });
      mark.addEventListener("mouseleave", hide);
      mark.addEventListener("focus", function () { beside(mark); });
      mark.addEventListener("blur", hide);
    });
    svg.addEventListener("keydown", function (e) {
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (e.key === "Escape") hide();
      var seen = marks.filter(function (mark) { return mark.style.display !== "none"; });
      var at = seen.indexOf(document.activeElement);
      if (!step || at < 0) return;
      e.preventDefault();
      var next = seen[(at + step + seen.length) % seen.length];
      seen[at].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  });
  addEventListener("scroll", hide, { passive: true });

  all("figure").forEach(function (figure) {
    all(".legend button", figure).forEach(function (button) {
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide";
      button.addEventListener("click", function () {
        var on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        all('svg [data-s="' + button.dataset.s + '"]', figure).forEach(function (part) { part.style.display = on ? "" : "none"; });
        // What is hidden cannot be the picture's one stop of the Tab key.
        all("svg", figure).forEach(function (svg) {
          var first = true;
          all(".m", svg).forEach(function (mark) {
            var seen = mark.style.display !== "none";
            mark.setAttribute("tabindex", seen && first ? "0" : "-1");
            if (seen) first = false;
          });
        });
      });
    });
  });

  all("thead").forEach(function (head) {
    var body = head.parentNode.tBodies[0], given = all("tr", body);
    all("th", head).forEach(function (th, column) {
      if (!th.textContent) return;
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      // Up, down, and as it was.
      button.addEventListener("click", function () {
        var order = { ascending: "descending", descending: "" }[th.getAttribute("aria-sort")];
        if (order === undefined) order = "ascending";
        all("th", head).forEach(function (other) { other.removeAttribute("aria-sort"); });
        var rows = given.slice(), sign = order === "descending" ? -1 : 1;
        if (order) {
          th.setAttribute("aria-sort", order);
          rows.sort(function (a, b) {
            var x = a.cells[column], y = b.cells[column];
            var p = x.dataset.v, q = y.dataset.v;
            if (p !== undefined && q !== undefined) return sign * (p - q);
            // What has no number comes last, either way.
            if (p !== undefined || q !== undefined) return p !== undefined ? -1 : 1;
            return sign * x.textContent.localeCompare(y.textContent, "en", { numeric: true });
          });
        }
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  });
})();
