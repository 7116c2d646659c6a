// Draws the charts of the page of analytics from the data beside them; without it their tables stay open.

const height = () => (window.innerWidth > 720 ? 240 : 200);
const DASHES = [[], [], [], [], [6, 4], [6, 4], [2, 3], [2, 3]];
const drawn = new Map();

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function said(value, percent) {
  if (value === null || value === undefined) return "—";
  return percent ? `${value.toFixed(2)} %` : value.toLocaleString("en");
}

function short(value, percent) {
  if (percent) return `${value} %`;
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

// A value between two gaps has no line: it gets a point. Where there are few, each has one.
function points(chart, index, _show, _gaps) {
  const values = chart.data[index];
  const found = [];
  for (let i = 0; i < values.length; i += 1) {
    const alone = (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null;
    if (values[i] !== null && (alone || values.length <= 31)) found.push(i);
  }
  return found;
}

function options(place, data) {
  const ink = token("--ink-faint");
  const line = token("--line");
  const font = `12px ${token("--font")}`;
  const readings = place.closest("figure").querySelectorAll("[data-reading]");
  const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: place.clientWidth,
    height: height(),
    legend: { show: false },
    padding: [12, 12, 0, 0],
    scales: { x: { time: false, range: (_u, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: { range: (_u, low, high) => uPlot.rangeNum(Math.min(low ?? 0, 0), Math.max(high ?? 1, data.percent ? 0.01 : 1), { min: { pad: 0.1, soft: 0, mode: 1 }, max: { pad: 0.1 } }) } },
    axes: [
      { ...axis, size: 28, grid: { show: false }, space: 90, incrs: [1, 2, 3, 7, 14, 30, 60, 90, 180, 360], values: (_u, places) => places.map((i) => (Number.isInteger(i) ? data.labels[i]?.replace(/ \d{4}$/, "").replace(/ \(.*\)$/, "") ?? "" : "")) },
      { ...axis, size: 56, incrs: data.percent ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 5e7, 1e8, 1e9, 1e10], values: (_u, values) => values.map((value) => short(value, data.percent)) },
    ],
    series: [
      {},
      ...data.lines.map((one, i) => ({
        label: one.name,
        stroke: token(`--chart-${i + 1}`),
        width: 2,
        dash: one.before ? [4, 4] : DASHES[i],
        points: { size: 6, filter: points },
      })),
    ],
    cursor: { drag: { x: false, y: false }, points: { size: 8 } },
    hooks: {
      setCursor: [(chart) => {
        const at = chart.cursor.idx;
        data.lines.forEach((one, i) => { readings[i].textContent = at === null || at === undefined ? "" : said(one.values[at], data.percent); });
        place.title = at === null || at === undefined ? "" : data.labels[at];
      }],
    },
  };
}

function draw(place) {
  drawn.get(place)?.destroy();
  const data = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  const rows = [data.labels.map((_label, i) => i), ...data.lines.map((one) => one.values)];
  drawn.set(place, new uPlot(options(place, data), rows, place));
}

function drawAll() {
  for (const place of document.querySelectorAll("[data-chart]")) draw(place);
}

// The canvas has neither heading nor names nor ground: a picture of it gets them.
function download(id) {
  const place = document.querySelector(`[data-chart="${id}"]`);
  const canvas = place.querySelector("canvas");
  const ratio = canvas.width / canvas.clientWidth;
  const data = JSON.parse(document.getElementById(id).textContent);
  const picture = document.createElement("canvas");
  const head = (44 + 22 * data.lines.length) * ratio;
  picture.width = canvas.width + 32 * ratio;
  picture.height = canvas.height + head + 16 * ratio;
  const pen = picture.getContext("2d");
  pen.fillStyle = token("--surface");
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.fillStyle = token("--ink");
  pen.font = `600 ${16 * ratio}px ${token("--font")}`;
  const title = document.getElementById(`${id}-head`).textContent;
  pen.fillText(`${title}, ${data.labels[0]} – ${data.labels.at(-1)}`, 16 * ratio, 28 * ratio, picture.width - 32 * ratio);
  pen.font = `${13 * ratio}px ${token("--font")}`;
  data.lines.forEach((one, i) => {
    const top = (52 + 22 * i) * ratio;
    pen.fillStyle = token(`--chart-${i + 1}`);
    pen.fillRect(16 * ratio, top - 9 * ratio, 12 * ratio, 10 * ratio);
    pen.fillStyle = token("--ink-soft");
    pen.fillText(one.name, 36 * ratio, top, picture.width - 52 * ratio);
  });
  pen.drawImage(canvas, 16 * ratio, head);
  picture.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${id}.png`;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}

for (const table of document.querySelectorAll("[data-chart-table]")) table.open = false;
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-chart-png]");
  if (button) download(button.dataset.chartPng);
});
// Its colours are those of the theme, and its width that of the page.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;
  width = window.innerWidth;
  // Narrower first, so that a chart doesn't hold its own place open.
  for (const [place, chart] of drawn) { chart.setSize({ width: 1, height: height() }); chart.setSize({ width: place.clientWidth, height: height() }); }
});
document.fonts.ready.then(drawAll);
