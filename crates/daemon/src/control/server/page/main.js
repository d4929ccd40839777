// Page: requests the status once a second, shows it, and reads events as they happen.

import { get, keepToken, stream } from "./api.js";
import { Capture } from "./capture.js";
import { charts } from "./charts.js";
import { add } from "./events.js";
import { glance } from "./glance.js";
import { functions, History } from "./history.js";
import { Mirror } from "./mirror.js";
import { Policy } from "./policy.js";
import { drops, interventions, rates } from "./rates.js";
import { topology } from "./topology.js";

const EVERY = 1000;
const find = (selector) => document.querySelector(selector);
const state = find("#state");
const token = find("#token");
const policy = new Policy("/v1/vfs", "VfSettings", [], find("#chosen"), find("#settings"), find("#outcome"));
const settings =
  new Policy("/v1/ports", "PortSettings", ["mirror"], find("#port-chosen"), find("#port-settings"), find("#port-outcome"));
const mirror = new Mirror("/v1/ports", find("#port-chosen"), find("#mirror"), find("#mirror-outcome"));
const capture = new Capture(find("#capture form"), find("#capture p"));
const history = new History();

const pause = () => new Promise((resolve) => setTimeout(resolve, EVERY));

function tell(text, bad) {
  if (state.textContent !== text) {
    state.textContent = text;
  }
  state.classList.toggle("bad", bad);
  // Old numbers must not look like the present ones.
  document.body.classList.toggle("stale", bad);
}

function failed(problem) {
  token.hidden = problem.status !== 401;
  tell(problem.status === 401 ? "a token is needed" : `no answer: ${problem.message}`, true);
}

function show(ports) {
  history.take(ports, performance.now());
  const found = glance(find("#glance"), ports, history);
  document.title = found ? `(${found}) SoftIOV` : "SoftIOV";
  charts(find("#charts .charts"), history);
  topology(find("#topology .ports"), ports);
  rates(find("#rates table"), ports, history);
  drops(find("#drops table"), ports);
  interventions(find("#interventions table"), ports, history);
  const clients = functions(ports).filter((vf) => vf.peer).length;
  const many = ports.length === 1 ? "1 port" : `${ports.length} ports`;
  tell(`${many}, ${clients} of ${functions(ports).length} functions with a client`, false);
}

async function look() {
  for (;;) {
    try {
      const ports = await get("/v1/ports");
      token.hidden = true;
      show(ports);
      capture.offer(ports);
      const vfs = ports.flatMap((port) => port.vfs.map((vf) => vf.name));
      // A port has settings unless a guest drives its PF.
      const names = ports.filter((port) => port.settings).map((port) => port.name);
      await policy.offer(vfs);
      await settings.offer(names);
      await mirror.offer(names, vfs);
    } catch (problem) {
      failed(problem);
    }
    await pause();
  }
}

async function follow() {
  let last = "";
  const list = find("#events ol");
  for (;;) {
    try {
      await stream(last, (kind, event, id) => {
        last = id ?? last;
        add(list, kind, event);
      });
    } catch {
      // The request for the ports shows the reason.
    }
    await pause();
  }
}

// A link to a section with a form opens the form.
find("nav").addEventListener("click", (event) => {
  find(`${event.target.hash || "nav"} > details`)?.setAttribute("open", "");
});
token.addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(token.elements.token.value);
});
look();
follow();
