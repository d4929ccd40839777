// Rates of the last minutes, for each function and for all together. The host has only counters.

const MINUTE = 60 * 1000;
/** Milliseconds after which a sample is removed. */
const KEPT = 5 * MINUTE;
/** Minutes that a chart may show: the first that has room for all samples. */
const SPANS = [1, 2, KEPT / MINUTE];
/** Milliseconds in which dropped frames count as trouble. */
const RECENT = MINUTE;
/** Seconds without a sample after which a chart has a gap. */
const GAP = 5;

/** Returns every function that a guest may have: the VFs, or the PF of a port without VFs. */
export function functions(ports) {
  return ports.flatMap((port) =>
    port.pf ? [{ ...port.pf, name: port.name, mac: port.mac, link: port.link, active: true }] : port.vfs);
}

/** Returns the counters of a function that charts and tables show. Received and sent are seen from the guest. */
function counters({ rx, tx, interventions }) {
  return {
    received: rx.packets, receivedMegabits: (rx.bytes * 8) / 1e6, sent: tx.packets, sentMegabits: (tx.bytes * 8) / 1e6,
    megabits: ((rx.bytes + tx.bytes) * 8) / 1e6, dropped: rx.dropped + tx.dropped, work: Object.values(interventions).reduce((sum, value) => sum + value, 0),
    ...interventions,
  };
}

/** Returns the changes of counters. A counter that fell belongs to a restarted host. */
function changes(now, before) {
  return Object.fromEntries(Object.entries(now).map(([key, value]) => [key, Math.max(0, value - (before?.[key] ?? value))]));
}

export class History {
  constructor() {
    Object.assign(this, { samples: [], before: new Map() });
  }

  /** Adds a sample from the status of all ports at a time in milliseconds. The first status gives no rates, so no sample. */
  take(ports, time) {
    const seconds = (time - this.time) / 1000;
    const sample = { time, gap: seconds > GAP, all: {}, each: new Map(), drops: new Map() };
    const before = this.before;
    this.before = new Map();
    for (const vf of functions(ports)) {
      const now = { counters: counters(vf), drops: vf.drops };
      const old = before.get(vf.name);
      this.before.set(vf.name, now);
      const rates = changes(now.counters, old?.counters);
      for (const key of Object.keys(rates)) {
        rates[key] /= seconds || 1;
        sample.all[key] = (sample.all[key] ?? 0) + rates[key];
      }
      sample.each.set(vf.name, rates);
      const drops = Object.entries(changes(now.drops, old?.drops)).filter(([, frames]) => frames);
      if (drops.length) {
        sample.drops.set(vf.name, drops);
      }
    }
    this.samples = [...this.samples, ...(seconds ? [sample] : [])].filter((kept) => kept.time > time - KEPT);
    this.time = time;
  }

  /** Returns the minutes that a chart shows, and its start and end in milliseconds. */
  span() {
    const first = this.samples[0]?.time ?? this.time;
    const minutes = SPANS.find((span) => first >= this.time - span * MINUTE) ?? SPANS.at(-1);
    return { minutes, start: this.time - minutes * MINUTE, end: this.time };
  }

  /** Returns the latest rates of a function, or of all together. */
  latest(name) {
    const sample = this.samples.at(-1);
    return (name ? sample?.each.get(name) : sample?.all) ?? {};
  }

  /** Returns a rate over time, of a function or of all together. */
  line(key, name) {
    const rate = (sample) => (name ? sample.each.get(name) : sample.all)?.[key] ?? 0;
    return this.samples.map((sample) => ({ time: sample.time, gap: sample.gap, value: rate(sample) }));
  }

  /** Returns the frames of a function that were dropped in the last minute, by reason. */
  drops(name) {
    const sums = new Map();
    for (const sample of this.samples.filter(({ time }) => time > this.time - RECENT)) {
      for (const [reason, frames] of sample.drops.get(name) ?? []) {
        sums.set(reason, (sums.get(reason) ?? 0) + frames);
      }
    }
    return sums;
  }
}
