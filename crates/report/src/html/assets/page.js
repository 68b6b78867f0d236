"use strict";
// Zooms maps, sorts and filters tables, selects stretches of time. Without this script the page says the same, as pictures and tables.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const percent = (part) => {
    const value = 100 * part;
    return (value >= 0.05 && value < 9.95 ? value.toFixed(1) : value.toFixed(0)) + "\u00a0%";
  };
  const bytes = (count) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (count >= 1024 && unit + 1 < units.length) {
      count /= 1024;
      unit += 1;
    }
    return (Number.isInteger(count) ? count : count.toFixed(1)) + "\u00a0" + units[unit];
  };
  const interval = (range) => (range ? " [" + percent(range[0]).replace("\u00a0%", "") + ", " + percent(range[1]).replace("\u00a0%", "") + "]" : "");
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const create = (parent, name, attributes) => {
    const element = document.createElementNS(SVG, name);
    set(element, attributes);
    parent.appendChild(element);
    return element;
  };
  const set = (element, attributes) => Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));

  // Maps.
  const node = (number) => (data.node_names && data.node_names[number] !== undefined ? data.node_names[number] : number);
  const thread = (number) => {
    const home = (data.thread_nodes || [])[number];
    return "thread " + number + (home === undefined ? "" : " (node " + node(home) + ")");
  };
  const who = (number, name, several) => (number === -2 ? "not known" : number === -1 ? several : name(number));

  const describe = (map, index) => {
    const [toucher, user, home, remote, range, share, samples, touched, used] = map.pieces[index];
    const at = (line) => (line === null || line === undefined ? "" : " at " + map.lines[line]);
    const parts = [bytes(index * map.bytes) + " to " + bytes((index + 1) * map.bytes)];
    if (toucher !== -2) parts.push("first touched by " + who(toucher, thread, "several threads") + at(touched));
    parts.push("used by " + who(user, thread, "several threads") + at(used));
    parts.push("lies on " + who(home, (number) => "node " + node(number), "several nodes"));
    if (remote !== null) parts.push(percent(remote) + interval(range) + " remote");
    if (samples > 0) parts.push(percent(share) + " of its accesses, " + samples + (samples === 1 ? " sample" : " samples"));
    return parts.join("; ");
  };

  for (const element of document.querySelectorAll("[data-map]")) {
    const map = (data.maps || {})[element.dataset.map];
    const view = element.querySelector(".view");
    const inner = element.querySelector(".zoom");
    const readout = element.querySelector(".readout");
    const count = map ? map.pieces.length : 32;
    let [first, width, at] = [0, 1, -1];
    const cursor = create(inner, "rect", { class: "cursor", y: "0", height: "100%", visibility: "hidden" });
    const show = () => {
      set(inner, { width: 100 / width + "%", x: (-100 * first) / width + "%" });
      element.classList.toggle("zoomed", width < 0.3);
      element.dataset.zoom = (1 / width).toFixed(2);
      if (at >= 0) set(cursor, { x: (100 * at) / count + "%", width: 100 / count + "%", visibility: "visible" });
      if (at >= 0 && map) {
        readout.hidden = false;
        readout.textContent = describe(map, at);
      }
    };
    const zoom = (factor, around) => {
      const next = clamp(width * factor, Math.min(1, 4 / count), 1);
      first = clamp(around - ((around - first) * next) / width, 0, 1 - next);
      width = next;
      show();
    };
    const move = (to) => {
      at = clamp(to, 0, count - 1);
      const [left, right] = [at / count, (at + 1) / count];
      if (left < first) first = left;
      if (right > first + width) first = right - width;
      show();
    };
    const position = (event) => {
      const box = view.getBoundingClientRect();
      return first + width * clamp((event.clientX - box.left) / box.width, 0, 0.999999);
    };
    view.addEventListener("pointermove", (event) => {
      at = Math.floor(position(event) * count);
      show();
    });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== view) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, position(event));
    }, { passive: false });
    view.addEventListener("pointerdown", () => view.focus());
    view.addEventListener("keydown", (event) => {
      const middle = at >= 0 ? (at + 0.5) / count : first + width / 2;
      const step = event.shiftKey ? Math.max(1, Math.round(count * width * 0.1)) : 1;
      const actions = {
        "+": () => zoom(0.5, middle),
        "=": () => zoom(0.5, middle),
        "-": () => zoom(2, middle),
        0: () => zoom(1e9, middle),
        ArrowRight: () => move(at + step),
        ArrowLeft: () => move(at < 0 ? 0 : at - step),
        Home: () => move(0),
        End: () => move(count - 1),
      };
      if (actions[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        actions[event.key]();
      }
    });
    view.addEventListener("focus", () => {
      if (at < 0) move(0);
    });
  }

  // Tables.
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", () => {
        const isUp = head.getAttribute("aria-sort") === "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column];
          const number = Number(cell.dataset.v);
          return cell.dataset.v === undefined || Number.isNaN(number) ? cell.textContent : number;
        };
        const rows = [...body.rows].map((row) => [key(row), row]);
        rows.sort(([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
        if (!isUp) rows.reverse();
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const input of document.querySelectorAll("[data-filters]")) {
    const body = document.getElementById(input.dataset.filters).tBodies[0];
    const status = document.getElementById(input.id + "-count");
    input.closest(".tools").hidden = false;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      status.textContent = words.length ? shown + " of " + body.rows.length + " objects" : "";
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.ctrlKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
        event.preventDefault();
        input.focus();
      }
    });
  }

  // Time.
  const time = document.getElementById("time");
  if (time && data.time) {
    const { bin_s: seconds, bins, moves } = data.time;
    const readout = document.getElementById("stretch");
    const brushes = [...time.querySelectorAll(".brush")].map((group) => create(group, "rect", { class: "stretch", height: "100%", visibility: "hidden" }));
    let [from, to] = [-1, -1];
    // The interval of a sum: samples that stand for different amounts count as fewer (Kish), and Wilson's interval of that many.
    const wilson = (part, n) => {
      const z = 1.96;
      const middle = (part + (z * z) / (2 * n)) / (1 + (z * z) / n);
      const half = (z / (1 + (z * z) / n)) * Math.sqrt((part * (1 - part)) / n + (z * z) / (4 * n * n));
      return [Math.max(0, middle - half), Math.min(1, middle + half)];
    };
    const show = () => {
      const [low, high] = from < to ? [from, to] : [to, from];
      const isSelected = low >= 0;
      brushes.forEach((brush) => set(brush, {
        x: (100 * Math.max(low, 0)) / bins.length + "%",
        width: (100 * (high - low + 1)) / bins.length + "%",
        visibility: isSelected ? "visible" : "hidden",
      }));
      readout.hidden = !isSelected;
      if (!isSelected) return;
      const some = bins.slice(low, high + 1);
      const sum = (key) => some.reduce((all, bin) => all + key(bin), 0);
      const known = some.filter((bin) => bin[1] !== null);
      const share = known.reduce((all, bin) => all + bin[0], 0);
      const parts = [(low * seconds).toFixed(2) + " s to " + ((high + 1) * seconds).toFixed(2) + " s"];
      if (share > 0) {
        const remote = known.reduce((all, bin) => all + bin[0] * bin[1], 0) / share;
        const effective = (share * share) / known.reduce((all, bin) => all + (bin[0] * bin[0]) / Math.max(bin[2], 1), 0);
        parts.push(percent(remote) + interval(wilson(remote, effective)) + " of the accesses remote", percent(share) + " of the run's accesses");
      } else {
        parts.push("no accesses seen");
      }
      const touched = some[0][3].map((_, home) => [home, sum((bin) => bin[3][home])]).filter(([, count]) => count > 0);
      parts.push(touched.length ? "first touched: " + touched.map(([home, count]) => bytes(Math.round(count)) + " on node " + node(home)).join(", ") : "nothing first touched");
      if (moves) parts.push(sum((bin) => bin[4]) + " pages moved");
      readout.textContent = parts.join("; ");
    };
    const bin = (event) => {
      const box = time.querySelector(".chart svg").getBoundingClientRect();
      return clamp(Math.floor(((event.clientX - box.left) / box.width) * bins.length), 0, bins.length - 1);
    };
    time.addEventListener("pointerdown", (event) => {
      from = to = bin(event);
      time.setPointerCapture(event.pointerId);
      show();
    });
    time.addEventListener("pointermove", (event) => {
      if (event.buttons === 1 && from >= 0) {
        to = bin(event);
        show();
      }
    });
    time.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step) {
        event.preventDefault();
        to = clamp(to < 0 ? 0 : to + step, 0, bins.length - 1);
        if (!event.shiftKey || from < 0) from = to;
        show();
      } else if (event.key === "Escape") {
        from = to = -1;
        show();
      }
    });
  }
})();
