/**
 * The worker: it has the viewer, the link and the painting, so that the page itself stays free.
 *
 * Invariant: what the viewer wants is done in the turn in which it was told something.
 */

import { Carrier, raise, type Transport } from "./carrier.js";
import { CursorTeller } from "./cursor.js";
import { Painter } from "./painter.js";
import { Search } from "./search.js";
import { Hearing } from "./sound/hearing.js";
import type { Input, Link, News, Order, State } from "./talk.js";
import { readTicket, type Ticket } from "./ticket.js";
import { TIMERS } from "./timers.js";
import { canDecode, Videos } from "./videos.js";
import { type Notice, Viewer } from "./viewer.js";

/** What a worker is for this script. */
interface Scope {
  onmessage: ((message: MessageEvent<Order>) => void) | null;
  postMessage(news: News): void;
}

const scope = globalThis as unknown as Scope;

let running: Running | undefined;
/** What the page has said of itself, the last of each kind: a session that begins is told. */
const standing = new Map<string, Input>();

scope.onmessage = ({ data }) => {
  switch (data.kind) {
    case "begin":
      begin(data.module, data.link).catch(raise);
      break;
    case "canvas":
      running?.setCanvas(data.key, data.canvas);
      break;
    case "input":
      if (data.input.kind === "area" || data.input.kind === "layout") {
        standing.set(data.input.kind, data.input);
      } else if (data.input.kind === "move") {
        scope.postMessage({ kind: "taken" });
      }
      running?.input(data.input);
      break;
    case "listen":
      running?.hearing.listen(data.port).catch(raise);
      break;
    case "latency":
      if (running !== undefined) {
        running.hearing.latency = data.latency;
      }
      break;
    case "retry":
      running?.retry();
      break;
    case "leave":
      running?.leave();
      break;
  }
};

async function begin(module: ArrayBuffer, { control, ticket: text }: Link): Promise<void> {
  const ticket = await readTicket(text);
  if (ticket === undefined) {
    return tell("no link");
  }
  if (!("WebTransport" in globalThis)) {
    return tell("no transport");
  }
  tell("connecting");
  const viewer = await Viewer.load(module);
  const [transport, videos] = await Promise.all([connect(ticket), canDecode()]);
  if (transport === undefined) {
    return tell("unreachable");
  }
  viewer.begin(ticket.secret, control, videos);
  running = new Running(viewer, ticket, control);
  running.begin(transport);
}

/** A link to the first place that answers. */
async function connect(ticket: Ticket): Promise<WebTransport | undefined> {
  const hash: WebTransportHash = { algorithm: "sha-256", value: ticket.certificate };
  const attempts = ticket.places.map(async (place) => {
    const transport = new WebTransport(`https://${place}/wayferry/1`, { serverCertificateHashes: [hash] });
    // What it ends with is heard elsewhere.
    transport.closed.catch(() => undefined);
    const patience = setTimeout(() => transport.close(), PATIENCE);
    await transport.ready.finally(() => clearTimeout(patience));
    return transport;
  });
  const first = await Promise.any(attempts).catch(() => undefined);
  for (const attempt of attempts) {
    attempt.then((other) => other === first || other.close()).catch(() => undefined);
  }
  return first;
}

/** A session that has begun, over one link after the other. */
class Running {
  readonly hearing: Hearing;
  readonly #viewer: Viewer;
  readonly #videos: Videos;
  readonly #painter: Painter;
  readonly #cursor: CursorTeller | undefined;
  readonly #search: Search<WebTransport>;
  /** None while one is looked for. */
  #link: { readonly transport: WebTransport; readonly carrier: Carrier } | undefined;
  /** The host has let the page in over the last link, and over any. */
  #isGood = false;
  #isKnown = false;
  #patience: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #measuring: ReturnType<typeof setTimeout> | undefined;
  #isDrawing = false;
  /** A turn is under way, or will be. */
  #isDue = false;

  constructor(viewer: Viewer, ticket: Ticket, control: boolean) {
    this.#viewer = viewer;
    this.hearing = new Hearing(viewer, () => this.#soon());
    this.#videos = new Videos(viewer, () => this.#soon());
    this.#cursor = control
      ? new CursorTeller(viewer, (cursor) => scope.postMessage({ kind: "cursor", cursor }))
      : undefined;
    this.#painter = new Painter(viewer, {
      window: (key, look) => scope.postMessage({ kind: "window", key, look }),
      gone: (key) => scope.postMessage({ kind: "gone", key }),
    });
    this.#search = new Search<WebTransport>(
      {
        connect: () => connect(ticket),
        found: (transport) => {
          viewer.resume();
          this.begin(transport);
        },
        drop: (transport) => transport.close(),
      },
      TIMERS,
    );
    this.#sayAgain();
  }

  /** Goes on over this link. */
  begin(transport: WebTransport): void {
    const carrier = new Carrier(transport as unknown as Transport, this.#viewer, () => this.#soon());
    this.#link = { transport, carrier };
    this.#soon();
  }

  /** A link may be there. */
  retry(): void {
    this.#search.now();
  }

  setCanvas(key: string, canvas: OffscreenCanvas): void {
    this.#painter.setCanvas(key, canvas);
    this.#draw();
  }

  input(input: Input): void {
    this.#viewer.input(input);
    if (input.kind === "leave") {
      // No program's cursor is shown there.
      this.#draw();
    }
    this.#soon();
  }

  leave(): void {
    this.#viewer.leave();
    this.#turn();
  }

  /** Has a turn when everything that has arrived at once was taken. */
  #soon(): void {
    if (!this.#isDue) {
      this.#isDue = true;
      queueMicrotask(() => this.#turn());
    }
  }

  #turn(): void {
    this.#isDue = false;
    this.hearing.pump();
    this.#videos.pump();
    this.#link?.carrier.pump();
    for (let notice = this.#viewer.pollNotice(); notice !== undefined; notice = this.#viewer.pollNotice()) {
      this.#onNotice(notice);
    }
    const clip = this.#viewer.pollCopied();
    if (clip !== undefined) {
      scope.postMessage({ kind: "copied", clip });
    }
    if (this.#viewer.wantsFrame()) {
      this.#draw();
    }
    clearTimeout(this.#timer);
    const next = this.#viewer.nextTimeout();
    if (next !== undefined) {
      this.#timer = setTimeout(() => {
        this.#viewer.onTimeout();
        this.#turn();
      }, next);
    }
  }

  #onNotice(notice: Notice): void {
    switch (notice.kind) {
      case "welcome":
        this.#shown();
        if (this.#viewer.maySound()) {
          scope.postMessage({ kind: "sound" });
        }
        break;
      case "away":
        this.#lookAgain();
        break;
      case "anew":
        this.#sayAgain();
        this.#shown();
        break;
      case "back":
        this.#shown();
        break;
      case "not shown":
        scope.postMessage({ kind: "not shown", why: notice.why });
        break;
      case "over":
        this.#search.stop();
        clearTimeout(this.#patience);
        tell(notice.over);
        this.#paint();
        break;
    }
  }

  #shown(): void {
    clearTimeout(this.#patience);
    this.#isGood = true;
    this.#isKnown = true;
    tell("shown");
    this.#measure();
    this.#draw();
  }

  #lookAgain(): void {
    this.#link?.carrier.abandon();
    this.#link = undefined;
    if (this.#isKnown) {
      tell("away");
    } else {
      this.#patience ??= setTimeout(() => this.#giveUp(), FIRST_PATIENCE);
    }
    this.#search.begin(this.#isGood);
    this.#isGood = false;
  }

  /** Who was never let in may be at no session. */
  #giveUp(): void {
    this.#search.stop();
    this.#link?.carrier.abandon();
    this.#link = undefined;
    tell("lost");
  }

  /** Tells what the page has said of itself. */
  #sayAgain(): void {
    for (const input of this.#cursor === undefined ? [] : standing.values()) {
      this.#viewer.input(input);
    }
  }

  /** Draws with the next frame; never while the page is not seen. */
  #draw(): void {
    if (!this.#isDrawing) {
      this.#isDrawing = true;
      requestAnimationFrame(() => {
        this.#isDrawing = false;
        this.#paint();
      });
    }
  }

  #paint(): void {
    this.#painter.paint();
    this.#cursor?.look().catch(raise);
    this.#soon();
  }

  /** Tells the round-trip time, where the browser does. */
  async #measure(): Promise<void> {
    const link = this.#link;
    const transport = link?.transport as { getStats?: () => Promise<{ smoothedRtt?: number }> } | undefined;
    const figures = await transport?.getStats?.().catch(() => undefined);
    if (figures !== undefined && link === this.#link) {
      scope.postMessage({ kind: "figures", rtt: figures.smoothedRtt });
      clearTimeout(this.#measuring);
      this.#measuring = setTimeout(() => this.#measure(), MEASURE_EVERY);
    }
  }
}

function tell(state: State): void {
  scope.postMessage({ kind: "state", state });
}

/** Milliseconds between two looks at the link's figures. */
const MEASURE_EVERY = 2000;

/** Milliseconds that one attempt to connect may take. */
const PATIENCE = 10_000;

/** Milliseconds for which the session is looked for that has never let the page in. */
const FIRST_PATIENCE = 30_000;
