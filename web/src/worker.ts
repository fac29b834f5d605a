/**
 * The worker: it has the viewer, the link and the painting, so that the page itself stays free.
 *
 * Invariant: what the viewer wants is done in the turn in which it was told something.
 */

import { Carrier, raise, type Transport } from "./carrier.js";
import { CursorTeller } from "./cursor.js";
import { Painter } from "./painter.js";
import { Socket } from "./socket.js";
import { Hearing } from "./sound/hearing.js";
import type { Input, Link, News, Order, State } from "./talk.js";
import { readTicket, type Ticket } from "./ticket.js";
import { Viewer } from "./viewer.js";
import { connect, thisBrowser, type Way } from "./way.js";

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
  tell("connecting");
  const viewer = await Viewer.load(module);
  const browser = thisBrowser();
  const way = await connect(ticket, text, browser);
  if (way === undefined) {
    return tell(browser.transport === undefined ? "no transport" : "unreachable");
  }
  running = new Running(viewer, way, ticket, control);
}

/** A session that has begun. */
class Running {
  readonly hearing: Hearing;
  readonly #viewer: Viewer;
  readonly #way: Way;
  readonly #carrier: Carrier | Socket;
  readonly #painter: Painter;
  readonly #cursor: CursorTeller | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isDrawing = false;
  /** A turn is under way, or will be. */
  #isDue = false;

  constructor(viewer: Viewer, way: Way, ticket: Ticket, control: boolean) {
    this.#viewer = viewer;
    this.#way = way;
    this.hearing = new Hearing(viewer, () => this.#soon());
    viewer.begin(ticket.secret, control);
    for (const input of control ? standing.values() : []) {
      viewer.input(input);
    }
    this.#cursor = control
      ? new CursorTeller(viewer, (cursor) => scope.postMessage({ kind: "cursor", cursor }))
      : undefined;
    this.#painter = new Painter(viewer, {
      window: (key, look) => scope.postMessage({ kind: "window", key, look }),
      gone: (key) => scope.postMessage({ kind: "gone", key }),
    });
    const onNews = () => this.#soon();
    this.#carrier =
      way.kind === "streams"
        ? new Carrier(way.transport as unknown as Transport, viewer, onNews)
        : new Socket(way.opened, viewer, onNews);
    this.#soon();
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
    this.#carrier.pump();
    for (let notice = this.#viewer.pollNotice(); notice !== undefined; notice = this.#viewer.pollNotice()) {
      switch (notice.kind) {
        case "welcome":
          tell("shown");
          if (this.#viewer.maySound()) {
            scope.postMessage({ kind: "sound" });
          }
          this.#measure();
          break;
        case "not shown":
          scope.postMessage({ kind: "not shown", why: notice.why });
          break;
        case "over":
          tell(notice.over);
          this.#paint();
          break;
      }
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

  /** Tells what the session is on, and the round-trip time: the browser's, or where it tells none, that of pings. */
  async #measure(): Promise<void> {
    const way = this.#way;
    const carrier = way.kind === "streams" ? "WebTransport" : "WebSocket";
    const measured = way.kind === "streams" ? await roundTrip(way.transport) : undefined;
    scope.postMessage({ kind: "figures", carrier, rtt: measured ?? this.#viewer.roundTrip() });
    setTimeout(() => this.#measure(), MEASURE_EVERY);
  }
}

async function roundTrip(transport: WebTransport): Promise<number | undefined> {
  const { getStats } = transport as unknown as { getStats?: () => Promise<{ smoothedRtt?: number }> };
  const figures = await getStats?.call(transport).catch(() => undefined);
  return figures?.smoothedRtt;
}

function tell(state: State): void {
  scope.postMessage({ kind: "state", state });
}

/** Milliseconds between two looks at the link's figures. */
const MEASURE_EVERY = 2000;
