"use strict";
// Zooms maps, sorts and filters tables, shows stretches of time. Without this script the page says the same, as pictures and tables.
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

  // What a selected stretch changes is put back afterwards.
  const kept = new Map();
  const CHANGED = ["class", "title", "visibility", "data-v", "stroke-width", "points"];
  const put = (element, contents, attributes) => {
    if (!kept.has(element)) kept.set(element, [[...element.childNodes], CHANGED.map((name) => [name, element.getAttribute(name)])]);
    if (contents) element.replaceChildren(...contents);
    set(element, attributes || {});
  };
  const putBack = () => {
    for (const [element, [contents, attributes]] of kept) {
      element.replaceChildren(...contents);
      attributes.forEach(([name, value]) => (value === null ? element.removeAttribute(name) : element.setAttribute(name, value)));
    }
    kept.clear();
  };
  const span = (text, name) => {
    const element = document.createElement("span");
    element.className = name;
    element.textContent = text;
    return element;
  };
  const drawn = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    set(element, attributes);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  // Figures of fewer samples are dimmed.
  const FEW = 30;
  const counted = (samples) => {
    const count = Math.round(samples);
    return count + (count === 1 ? " sample" : " samples");
  };
  // The interval of a sum: samples that stand for different amounts count as fewer (Kish), and Wilson's interval of that many.
  const wilson = (part, n) => {
    const z = 1.96;
    const middle = (part + (z * z) / (2 * n)) / (1 + (z * z) / n);
    const half = (z / (1 + (z * z) / n)) * Math.sqrt((part * (1 - part)) / n + (z * z) / (4 * n * n));
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  };
  // A sum of cells. `part`: what is asked about, such as remote accesses.
  class Sum {
    all = 0;
    part = 0;
    squares = 0;
    samples = 0;
    add(cell, isPart) {
      this.all += cell.weight;
      this.part += isPart ? cell.weight : 0;
      this.squares += (cell.weight * cell.weight) / Math.max(cell.samples, 1);
      this.samples += cell.samples;
    }
    effective() {
      return Math.max(1, (this.all * this.all) / this.squares);
    }
    share() {
      return this.part / this.all;
    }
    interval() {
      return wilson(this.share(), this.effective());
    }
  }
  const sumIn = (map, key) => {
    if (!map.has(key)) map.set(key, new Sum());
    return map.get(key);
  };
  // Views that follow the selected stretch: functions of its sums, and of nothing for the whole run.
  const followers = [];

  // Maps.
  const node = (number) => (data.node_names && data.node_names[number] !== undefined ? data.node_names[number] : number);
  const thread = (number) => {
    const home = (data.thread_nodes || [])[number];
    return "thread " + number + (home === undefined ? "" : " (node " + node(home) + ")");
  };
  const who = (number, name, several) => (number === -2 ? "not known" : number === -1 ? several : name(number));

  const describe = (map, index, now) => {
    const [toucher, ofRun, home, ...figures] = map.pieces[index];
    const [remote, range, share, samples, touched, usedAt] = now ? [...now.figures(index), figures[4], null] : figures;
    const user = now ? now.user(index) : ofRun;
    const used = now ? null : usedAt;
    const at = (line) => (line === null || line === undefined ? "" : " at " + map.lines[line]);
    const parts = [bytes(index * map.bytes) + " to " + bytes((index + 1) * map.bytes)];
    if (toucher !== -2) parts.push("first touched by " + who(toucher, thread, "several threads") + at(touched));
    parts.push(now && user === -2 ? "no use seen" : "used by " + who(user, thread, "several threads") + at(used));
    parts.push("lies on " + who(home, (number) => "node " + node(number), "several nodes"));
    if (remote !== null) parts.push(percent(remote) + interval(range) + " remote");
    if (samples > 0) parts.push(percent(share) + " of its accesses, " + counted(samples));
    if (now) parts.push("use: " + now.words + (now.joined > 1 ? ", of " + now.joined + " pieces together" : ""));
    return parts.join("; ");
  };

  // Who used the pieces of a map in a stretch, and what was remote; null if the page does not have that.
  const pieces = (map, id, stretch) => {
    const joined = data.by_time.maps[id];
    if (!joined) return null;
    const sums = stretch.pieces.get(map.object) || new Map();
    const all = [...sums.values()].reduce((sum, piece) => sum + piece.use.all, 0);
    const of = (index) => sums.get(index - (index % joined));
    return {
      joined,
      words: stretch.words,
      samples: [...sums.values()].reduce((sum, piece) => sum + piece.use.samples, 0),
      user: (index) => {
        const piece = of(index);
        if (!piece) return -2;
        const [who, most] = [...piece.threads].reduce((best, one) => (one[1] > best[1] ? one : best));
        return most >= 0.6 * piece.use.samples ? who : -1;
      },
      figures: (index) => {
        const piece = of(index);
        if (!piece) return [null, null, 0, 0];
        const isKnown = piece.known.all > 0;
        return [isKnown ? piece.known.share() : null, isKnown ? piece.known.interval() : null, piece.use.all / all, piece.use.samples];
      },
    };
  };
  // Draws rows of a map again: of each, its name and the value of a piece. `of`: how many pieces there are, which of them to draw, and how many at a time.
  const drawRows = (element, rows, of, replace) => {
    for (const [name, value] of rows) {
      const row = element.querySelector('[data-row="' + name + '"]');
      if (!row) continue;
      const [top, height] = [Number(row.dataset.top), Number(row.dataset.height)];
      const [cells, labels] = [drawn("g", { class: "cells" }), []];
      for (let from = of.first, to; from < of.end; from = to) {
        const here = value(from);
        for (to = from; to < of.end && value(to) === here; ) to += of.step;
        to = Math.min(to, of.end);
        const place = { x: (100 * from) / of.all + "%", width: (100 * (to - from)) / of.all + "%", y: top, height };
        if (name === "remote") {
          const tall = here === null ? height : here * height;
          if (tall > 0) cells.append(drawn("rect", { ...place, class: here === null ? "unseen" : "remote", y: top + height - tall, height: tall }));
          continue;
        }
        const home = name === "lies on" ? here : (data.thread_nodes || [])[here];
        cells.append(drawn("rect", { ...place, class: here === -2 ? "nu" : here < 0 || home === undefined ? "ns" : "n" + (home % 8) }));
        const text = name === "lies on" ? node(here) : here;
        const wide = (to - from) / of.wide / (String(text).length * 0.5 + 0.5);
        if (here >= 0 && wide >= 0.004) {
          const at = { x: (50 * (from + to)) / of.all + "%", y: top + 14, "text-anchor": "middle", class: wide >= 0.03 ? "label" : "label close" };
          labels.push(drawn("text", at, text));
        }
      }
      replace(row, [cells, ...labels]);
    }
  };
  const drawPieces = (element, count, now) => {
    const rows = [["used by", now.user], ["remote", (index) => now.figures(index)[0]]];
    drawRows(element, rows, { first: 0, end: count, step: now.joined, all: count, wide: count }, put);
    const title = element.querySelector(".rows");
    put(title, [...title.children].map((one) => span(one.textContent, /used|remote/.test(one.textContent) ? "timed" : "")));
  };
  // The parts of pieces: equal ones next to each other are written once.
  const partsOf = (map) => (map && map.close ? map.close.runs.flatMap(([count, ...part]) => Array(count).fill(part)) : []);
  const describePart = (map, part, index) => {
    const [toucher, user, home, remote, range, samples] = part;
    const parts = [bytes(index * map.close.bytes) + " to " + bytes((index + 1) * map.close.bytes)];
    if (toucher !== -2) parts.push("first touched by " + who(toucher, thread, "several threads"));
    parts.push(user === -2 ? "no use seen" : "used by " + who(user, thread, "several threads"));
    parts.push("lies on " + who(home, (number) => "node " + node(number), "several nodes"));
    if (remote !== null) parts.push(percent(remote) + interval(range) + " remote");
    if (samples > 0) parts.push(counted(samples));
    return parts.join("; ");
  };

  for (const element of document.querySelectorAll("[data-map]")) {
    const map = (data.maps || {})[element.dataset.map];
    const view = element.querySelector(".view");
    const inner = element.querySelector(".zoom");
    const readout = element.querySelector(".readout");
    const close = partsOf(map);
    const count = map ? map.pieces.length : 32;
    const parts = close.length > 0 ? map.close.parts : 1;
    const all = count * parts;
    // `at`: the part that is looked at. Parts are shown where a piece would be as wide as they are on the whole map.
    let [first, width, at, now] = [0, 1, -1, null];
    const isClose = () => parts > 1 && !now && width <= 1 / parts;
    const unit = () => (isClose() ? 1 : parts);
    const cursor = create(inner, "rect", { class: "cursor", y: "0", height: "100%", visibility: "hidden" });
    const whole = [...element.querySelectorAll("g[data-row]")].map((row) => [row, [...row.childNodes]]);
    const ROWS = ["first touch", "used by", "lies on", "remote"].map((name, column) => [name, (index) => close[index][column]]);
    const draw = () => {
      const drawsParts = isClose();
      if (drawsParts) {
        const [from, to] = [Math.floor(first * all), Math.min(all, Math.ceil((first + width) * all))];
        drawRows(element, ROWS, { first: from, end: to, step: 1, all, wide: width * all * 4 }, (row, contents) => row.replaceChildren(...contents));
      } else if (element.classList.contains("parts")) {
        whole.forEach(([row, contents]) => row.replaceChildren(...contents));
      }
      element.classList.toggle("parts", drawsParts);
    };
    const show = () => {
      set(inner, { width: 100 / width + "%", x: (-100 * first) / width + "%" });
      element.classList.toggle("zoomed", width < 0.3);
      element.dataset.zoom = (1 / width).toFixed(2);
      draw();
      if (at < 0) return;
      const index = Math.floor(at / unit());
      set(cursor, { x: (100 * index * unit()) / all + "%", width: (100 * unit()) / all + "%", visibility: "visible" });
      if (map) {
        readout.hidden = false;
        readout.textContent = isClose() ? describePart(map, close[index], index) : describe(map, index, now);
      }
    };
    const zoom = (factor, around) => {
      const next = clamp(width * factor, Math.min(1, 4 / all), 1);
      first = clamp(around - ((around - first) * next) / width, 0, 1 - next);
      width = next;
      show();
    };
    const move = (to) => {
      at = clamp(to, 0, all / unit() - 1) * unit();
      const [left, right] = [at / all, (at + unit()) / all];
      if (left < first) first = left;
      if (right > first + width) first = right - width;
      show();
    };
    const position = (event) => {
      const box = view.getBoundingClientRect();
      return first + width * clamp((event.clientX - box.left) / box.width, 0, 0.999999);
    };
    view.addEventListener("pointermove", (event) => {
      at = Math.floor(position(event) * all);
      show();
    });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== view) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, position(event));
    }, { passive: false });
    view.addEventListener("pointerdown", () => view.focus());
    view.addEventListener("keydown", (event) => {
      const index = Math.floor(at / unit());
      const middle = at >= 0 ? ((index + 0.5) * unit()) / all : first + width / 2;
      const step = event.shiftKey ? Math.max(1, Math.round((all / unit()) * width * 0.1)) : 1;
      const actions = {
        "+": () => zoom(0.5, middle),
        "=": () => zoom(0.5, middle),
        "-": () => zoom(2, middle),
        0: () => zoom(1e9, middle),
        ArrowRight: () => move(at < 0 ? 0 : index + step),
        ArrowLeft: () => move(at < 0 ? 0 : index - step),
        Home: () => move(0),
        End: () => move(all / unit() - 1),
      };
      if (actions[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        actions[event.key]();
      }
    });
    view.addEventListener("focus", () => {
      if (at < 0) move(0);
    });
    show();
    if (map) {
      followers.push((stretch) => {
        now = stretch && pieces(map, element.dataset.map, stretch);
        // The whole map is what is put back when the stretch ends.
        draw();
        if (now) drawPieces(element, count, now);
        show();
      });
    }
  }

  // Tables.
  const few = (samples, name) => (samples < FEW ? name + " few" : name);
  const figure = (part, range) => [span(percent(part), "f"), ...(range ? [" ", span(interval(range).trim(), "ci")] : [])];
  const label = (element, stretch) => put(element, [...element.childNodes, span(" \u2013 " + stretch.words, "timed")]);
  const showObjects = (table, stretch) => {
    label(table.caption, stretch);
    for (const row of table.tBodies[0].rows) {
      const index = Number(row.dataset.object);
      const [, , accesses, remote] = row.cells;
      const share = stretch.shares.get(index);
      const own = stretch.remote.get(index);
      const samples = own ? own.samples : 0;
      const isKept = index < data.by_time.objects;
      const unseen = [[isKept ? "\u2013" : "not kept by time"], { class: "n few", "data-v": "-1" }];
      if (Number(accesses.dataset.v) >= 0) {
        // The part of the object in all accesses of the stretch.
        const part = share ? share.all / stretch.all.all : 0;
        const range = share && wilson(part, stretch.all.effective());
        put(accesses, ...(share ? [[...figure(part, range), span(" " + counted(share.samples), "hint")], { class: few(share.samples, "n"), "data-v": part.toFixed(6) }] : unseen));
      }
      if (Number(remote.dataset.v) < 0) continue;
      if (data.by_time.elsewhere.includes(index)) {
        put(remote, [...remote.childNodes, span(" whole run", "hint")]);
      } else {
        put(remote, ...(own ? [figure(own.share(), own.interval()), { class: few(samples, "n"), "data-v": own.share().toFixed(6) }] : unseen));
      }
    }
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const sort = () => {
      const column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
      if (column < 0) return;
      const key = (row) => {
        const cell = row.cells[column];
        const number = Number(cell.dataset.v);
        return cell.dataset.v === undefined || Number.isNaN(number) ? cell.textContent : number;
      };
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
      if (heads[column].getAttribute("aria-sort") === "descending") rows.reverse();
      body.append(...rows.map(([, row]) => row));
    };
    if (table.id === "objects-table") {
      followers.push((stretch) => {
        if (stretch) showObjects(table, stretch);
        sort();
      });
    }
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
        sort();
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

  // Areas, squarified as in the picture of the whole run.
  const squarified = (weights) => {
    const total = weights.reduce((sum, one) => sum + one, 0);
    let rest = weights.map((weight) => (4 * weight) / total);
    let [x, y, width, height] = [0, 0, 4, 1];
    const areas = [];
    while (rest.length) {
      const short = Math.max(Math.min(width, height), 1e-12);
      const worst = (count) => {
        const side = rest.slice(0, count).reduce((sum, one) => sum + one, 0) / short;
        return rest.slice(0, count).reduce((most, one) => Math.max(most, (side * side) / one, one / (side * side)), 0);
      };
      let count = 1;
      while (count < rest.length && worst(count + 1) <= worst(count)) count += 1;
      const isColumn = width >= height;
      const side = rest.slice(0, count).reduce((sum, one) => sum + one, 0) / (isColumn ? height : width);
      let [left, top] = [x, y];
      for (const area of rest.slice(0, count)) {
        areas.push(isColumn ? [left / 4, top, side / 4, area / side] : [left / 4, top, area / side / 4, side]);
        if (isColumn) top += area / side;
        else left += area / side;
      }
      [x, y, width, height] = isColumn ? [x + side, y, Math.max(width - side, 0), height] : [x, y + side, width, Math.max(height - side, 0)];
      rest = rest.slice(count);
    }
    return areas;
  };
  // The contents of an object's area, as text: its name, its size and the remote part.
  const area = (stretch, index, hasRoom) => {
    const row = document.querySelector('#objects-table tr[data-object="' + index + '"]');
    const own = stretch.remote.get(index);
    const isKnown = row && own && Number(row.cells[3].dataset.v) >= 0 && !data.by_time.elsewhere.includes(index);
    const [name, size] = row ? [row.cells[0].textContent, row.cells[1].textContent + (isKnown ? ", " + percent(own.share()) + " remote" : "")] : ["", ""];
    const contents = [drawn("rect", { class: "box", width: "100%", height: "100%" })];
    if (isKnown && own.share() > 0.005) {
      contents.push(drawn("rect", { class: "heat", width: "100%", height: "100%", "fill-opacity": (0.1 + 0.6 * own.share()).toFixed(2) }));
    }
    if (hasRoom) contents.push(drawn("text", { class: "name", x: 6, y: 16 }, name), drawn("text", { x: 6, y: 31 }, size));
    contents.push(drawn("title", {}, name + ": " + size));
    return contents;
  };
  for (const picture of document.querySelectorAll(".treemap")) {
    followers.push((stretch) => {
      if (!stretch) return;
      label(picture.closest("figure").querySelector("figcaption"), stretch);
      if (picture.id !== "tree-remote") {
        for (const one of picture.querySelectorAll("svg")) put(one, area(stretch, Number(one.dataset.object), one.querySelector("text") !== null));
        return;
      }
      const isJudged = (index) => {
        const row = document.querySelector('#objects-table tr[data-object="' + index + '"]');
        return row && Number(row.cells[3].dataset.v) >= 0 && !data.by_time.elsewhere.includes(index);
      };
      const weight = ([index, share]) => [index, share.all * (stretch.remote.has(index) ? stretch.remote.get(index).share() : 0)];
      const order = [...stretch.shares].map(weight).filter(([index, part]) => part > 0 && isJudged(index));
      order.sort((a, b) => b[1] - a[1]).splice(120);
      const boxes = squarified(order.map(([, part]) => part)).map(([x, y, width, height], at) => {
        const box = drawn("svg", { "data-object": order[at][0], x: 100 * x + "%", y: 100 * y + "%", width: 100 * width + "%", height: 100 * height + "%" });
        box.append(...area(stretch, order[at][0], width >= 0.06 && height >= 0.16));
        return box;
      });
      const none = drawn("text", { x: 6, y: 16 }, "no remote accesses seen in this stretch");
      put(picture, [picture.querySelector("title"), ...(boxes.length ? boxes : [none])]);
    });
  }

  // Matrices.
  const shade = (part, isRemote) => {
    const step = Math.ceil(8 * clamp(part, 0, 1));
    return step > 0 ? (isRemote ? "n r" : "n h") + step : "n";
  };
  const byNode = document.getElementById("nodes-matrix");
  if (byNode) {
    followers.push((stretch) => {
      if (!stretch) return;
      label(byNode.caption, stretch);
      const parts = [...stretch.matrix].map(([, sum]) => sum.all / stretch.nodes.all);
      const most = Math.max(1e-12, ...parts);
      [...byNode.rows].slice(1).forEach((row, from) => {
        [...row.cells].slice(1).forEach((cell, to) => {
          const sum = stretch.matrix.get(from + " " + to) || new Sum();
          const part = stretch.nodes.all > 0 ? sum.all / stretch.nodes.all : 0;
          const contents = from === to ? figure(part) : [...figure(part), span(" remote", "visually-hidden")];
          put(cell, contents, { class: few(stretch.nodes.samples, shade(part / most, from !== to)), title: counted(sum.samples) });
        });
      });
    });
  }
  const byThread = document.getElementById("threads-matrix");
  if (byThread) {
    followers.push((stretch) => {
      if (!stretch) return;
      label(byThread.caption, stretch);
      const [heads, ...rows] = byThread.rows;
      for (const row of rows) {
        const index = Number(row.dataset.object);
        const own = stretch.users.get(index);
        const parts = [...heads.cells].slice(1).map((head) => {
          const of = own && (head.dataset.thread === undefined ? own.nodes.get(Number(head.dataset.node)) : own.threads.get(Number(head.dataset.thread)));
          return of ? [of.all / own.use.all, of.samples] : [0, 0];
        });
        const isByNode = heads.cells[1].dataset.node !== undefined;
        const isKept = index < data.by_time.objects && (isByNode || !own || !own.threads.has(-1));
        const most = isByNode ? 1 : Math.max(1e-12, ...parts.map(([part]) => part));
        parts.forEach(([part, samples], at) => {
          const contents = !isKept ? ["?"] : part > 0 ? figure(part) : [];
          put(row.cells[at + 1], contents, { class: few(own ? own.use.samples : 0, shade(isKept ? part / most : 0, false)), title: isKept ? counted(samples) : "not kept by time" });
        });
      }
    });
  }

  // The machine.
  const machine = document.getElementById("machine-picture");
  if (machine) {
    followers.push((stretch) => {
      if (!stretch) return;
      const part = (from, to) => (stretch.matrix.get(from + " " + to) || new Sum()).all / (stretch.nodes.all || 1);
      const flows = [...machine.querySelectorAll(".flow-of")].map((group) => [part(group.dataset.from, group.dataset.to), group]);
      flows.sort((a, b) => b[0] - a[0]).forEach(([of, group], at) => {
        const isShown = at < Number(machine.dataset.most) && of >= 0.005;
        const [line, point, text] = group.querySelectorAll("line, polygon, text");
        const wide = clamp(of * Number(machine.dataset.scale), 1.5, 14);
        const [length, head] = [Number(line.getAttribute("x2")), wide / 2 + 4];
        put(group, null, { visibility: isShown ? "visible" : "hidden" });
        put(line, null, { "stroke-width": wide });
        put(point, null, { points: length + "," + -head + " " + length + "," + head + " " + (length + 9) + ",0" });
        put(text, [percent(of)]);
      });
      for (const text of machine.querySelectorAll(".held")) {
        const held = [...stretch.matrix].reduce((sum, [key, one]) => sum + (key.split(" ")[1] === text.dataset.node ? one.all : 0), 0);
        put(text, [percent(held / (stretch.nodes.all || 1)) + " of accesses end here"]);
      }
      const shown = flows.filter(([of]) => of >= 0.005).map(([of, group]) => percent(of) + " of the accesses go from threads on node " + group.dataset.from + " to memory on node " + group.dataset.to);
      put(machine.querySelector("desc"), [stretch.words + ": " + (shown.join("; ") || "no remote accesses") + "."]);
    });
  }

  // The accesses of each stretch of time.
  const cells = [];
  for (const [object, counts, unit, series] of data.by_time ? data.by_time.cells : []) {
    for (const [thread, from, home, piece, ...values] of series) {
      for (let at = 0; at < values.length; at += 3) {
        cells.push({ object, counts, thread, from, home, piece, bin: values[at], weight: values[at + 1] * unit, samples: values[at + 2] });
      }
    }
  }
  // The sums of stretches from low to high, for all views.
  const sums = (low, high, words) => {
    const sum = { words, all: new Sum(), nodes: new Sum(), shares: new Map(), remote: new Map(), users: new Map(), matrix: new Map(), pieces: new Map() };
    for (const cell of cells) {
      if (cell.bin < low || cell.bin > high) continue;
      const isRemote = cell.from !== cell.home;
      if (cell.counts & 1) {
        sum.all.add(cell);
        sumIn(sum.shares, cell.object).add(cell);
      }
      if (cell.counts & 4) {
        sum.nodes.add(cell, isRemote);
        sumIn(sum.matrix, cell.from + " " + cell.home).add(cell);
      }
      if (!(cell.counts & 2)) continue;
      if (cell.home >= 0) sumIn(sum.remote, cell.object).add(cell, isRemote);
      if (!sum.users.has(cell.object)) sum.users.set(cell.object, { use: new Sum(), threads: new Map(), nodes: new Map() });
      const users = sum.users.get(cell.object);
      users.use.add(cell);
      sumIn(users.threads, cell.thread).add(cell);
      sumIn(users.nodes, cell.from).add(cell);
      if (!sum.pieces.has(cell.object)) sum.pieces.set(cell.object, new Map());
      const pieces = sum.pieces.get(cell.object);
      if (!pieces.has(cell.piece)) pieces.set(cell.piece, { use: new Sum(), known: new Sum(), threads: new Map() });
      const piece = pieces.get(cell.piece);
      piece.use.add(cell);
      piece.threads.set(cell.thread, (piece.threads.get(cell.thread) || 0) + cell.samples);
      if (cell.home >= 0) piece.known.add(cell, isRemote);
    }
    return sum;
  };

  // Time.
  const time = document.getElementById("time");
  if (time && data.time) {
    const { bin_s: seconds, bins, moves } = data.time;
    const readout = document.getElementById("stretch");
    const brushes = [...time.querySelectorAll(".brush")].map((group) => create(group, "rect", { class: "stretch", height: "100%", visibility: "hidden" }));
    const step = data.by_time ? data.by_time.bins : 1;
    let [from, to] = [-1, -1];
    // Whole stretches of the table, so that all views show the same.
    const selected = () => {
      const [low, high] = from < to ? [from, to] : [to, from];
      return low < 0 ? null : [low - (low % step), Math.min(high - (high % step) + step, bins.length) - 1];
    };
    const words = ([low, high]) => (low * seconds).toFixed(2) + " s to " + ((high + 1) * seconds).toFixed(2) + " s";
    const item = document.createElement("li");
    const back = document.createElement("button");
    back.type = "button";
    back.textContent = "whole run";
    item.className = "chosen";
    item.hidden = true;
    item.append(span("", "timed"), " ", back);
    document.querySelector("nav ul").prepend(item);
    const OF_RUN = " All else here: the whole run.";
    const note = (id, stretch) => {
      if (!stretch) return "Of the whole run";
      if (id === "objects") return stretch.words + ": accesses, remote parts and areas by remote accesses; in italics: fewer than " + FEW + " samples." + OF_RUN;
      if (id === "threads") return stretch.words + ", " + counted(stretch.nodes.samples) + " with a known node.";
      const isMapped = (id === "findings" || id === "maps") && Object.keys(data.by_time.maps).length > 0;
      return isMapped ? stretch.words + " in the marked rows of maps." + OF_RUN : "Of the whole run, not of " + stretch.words + ".";
    };
    // What is looked at, and its place, until the views are redrawn.
    let anchored = null;
    const anchor = () => {
      const box = time.getBoundingClientRect();
      const isSeen = box.bottom > 0 && box.top < innerHeight;
      const element = isSeen ? time : document.elementFromPoint(innerWidth / 2, innerHeight / 2) || time;
      return { element, top: element.getBoundingClientRect().top };
    };
    const follow = () => {
      const { element, top } = anchored;
      anchored = null;
      const range = selected();
      putBack();
      const stretch = range && sums(range[0] / step, Math.floor(range[1] / step), words(range));
      const isKnown = stretch && cells.length > 0;
      followers.forEach((follower) => follower(isKnown ? stretch : null));
      if (stretch) {
        for (const about of document.querySelectorAll("section > .about")) {
          const id = about.parentElement.id;
          const said = isKnown ? note(id, stretch) : "Of the whole run, not of " + stretch.words + ".";
          if (id !== "time-view") put(about, [said + " Whole run: Escape."], { class: "about timed" });
        }
        const header = document.querySelector("header");
        put(header, [...header.childNodes, span("Verdict and figures above: the whole run, not " + stretch.words + ".", "timed")]);
      }
      // What changed above must not move it.
      scrollBy({ top: element.isConnected ? element.getBoundingClientRect().top - top : 0, behavior: "instant" });
    };
    const show = () => {
      if (!anchored) {
        anchored = anchor();
        requestAnimationFrame(follow);
      }
      const range = selected();
      const [low, high] = range || [-1, -1];
      brushes.forEach((brush) => set(brush, {
        x: (100 * Math.max(low, 0)) / bins.length + "%",
        width: (100 * (high - low + 1)) / bins.length + "%",
        visibility: range ? "visible" : "hidden",
      }));
      readout.hidden = item.hidden = !range;
      if (!range) return;
      item.firstChild.textContent = words(range);
      const some = bins.slice(low, high + 1);
      const sum = (key) => some.reduce((all, bin) => all + key(bin), 0);
      const known = some.filter((bin) => bin[1] !== null);
      const share = known.reduce((all, bin) => all + bin[0], 0);
      const parts = [words(range)];
      if (share > 0) {
        const remote = known.reduce((all, bin) => all + bin[0] * bin[1], 0) / share;
        const effective = (share * share) / known.reduce((all, bin) => all + (bin[0] * bin[0]) / Math.max(bin[2], 1), 0);
        parts.push(percent(remote) + interval(wilson(remote, effective)) + " of the accesses remote", percent(share) + " of the run's accesses");
        const speeds = some.filter((bin) => bin[6]);
        if (speeds.length > 0 && some.every((bin) => bin[2] === 0 || bin[6])) {
          const speed = sum((bin) => (bin[6] ? bin[6][0] : 0)) / some.length;
          const error = Math.sqrt(sum((bin) => (bin[6] ? ((bin[6][2] - bin[6][1]) / 2) ** 2 : 0))) / some.length;
          parts.push("about " + speed.toFixed(1) + " GB/s [" + Math.max(0, speed - error).toFixed(1) + ", " + (speed + error).toFixed(1) + "]");
        }
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
    const clear = () => {
      from = to = -1;
      show();
    };
    time.addEventListener("keydown", (event) => {
      const next = { ArrowRight: to < 0 ? 0 : to + step, ArrowLeft: to < 0 ? 0 : to - step, Home: 0, End: bins.length - 1 }[event.key];
      if (next !== undefined) {
        event.preventDefault();
        to = clamp(next, 0, bins.length - 1);
        if (!event.shiftKey || from < 0) from = to;
        show();
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && from >= 0 && event.target.tagName !== "INPUT") clear();
    });
    back.addEventListener("click", () => {
      clear();
      time.focus({ preventScroll: true });
    });
  }
})();
