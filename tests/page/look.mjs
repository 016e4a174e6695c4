// Opens a page in Chromium and prints what it shows, as JSON.
//
//   node look.mjs PAGE.html [PREFIX]
//
// With a prefix, also writes pictures: PREFIX-light.png, PREFIX-dark.png, PREFIX-phone.png.
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [file, prefix] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

// What the test asks about, read in the page itself.
function seen() {
  const visible = (element) => element.getClientRects().length > 0;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(visible);
  const width = document.documentElement.clientWidth;
  const overflows = all("body *").filter(
    (element) => !element.closest(".scroll table") && element.getBoundingClientRect().right > width + 0.5,
  );
  return {
    title: document.title,
    headings: all("h2").map((element) => element.textContent),
    statement: all(".statement strong").map((element) => element.textContent),
    highlights: all(".highlights dt").map((element) => element.textContent),
    captions: all("figcaption").map((element) => element.textContent),
    lines: all("svg .line").map((element) => element.getAttribute("points").trim().split(/\s+/).length),
    bars: all("svg .bar").length,
    drawings: all("svg.chart").length,
    named: all("svg.chart").filter((svg) => svg.querySelector("title") && svg.querySelector("desc")).length,
    page_width: document.documentElement.scrollWidth,
    overflows: overflows.map((element) => `${element.tagName} ${element.textContent.slice(0, 40)}`),
    background: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    line_colour: all("svg .line").length > 0 ? getComputedStyle(all("svg .line")[0]).stroke : "",
    scripts: document.scripts.length,
  };
}

async function look(name, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) {
      requests.push(request.url());
    }
  });
  await page.goto(url);
  const result = { ...(await page.evaluate(seen)), complaints, requests };
  if (prefix) {
    await page.screenshot({ path: `${prefix}-${name}.png`, fullPage: true });
  }
  await context.close();
  return result;
}

const desktop = { viewport: { width: 1200, height: 900 } };
const phone = { viewport: { width: 380, height: 800 }, deviceScaleFactor: 2 };
console.log(
  JSON.stringify({
    light: await look("light", { ...desktop, colorScheme: "light" }),
    dark: await look("dark", { ...desktop, colorScheme: "dark" }),
    phone: await look("phone", { ...phone, colorScheme: "light" }),
  }),
);
await browser.close();
