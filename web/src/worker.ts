/**
 * The worker: it has the viewer, the link and the painting, so that the page itself stays free.
 *
 * Invariant: what the viewer wants is done in the turn in which it was told something.
 */

import { Carrier, raise, type Transport } from "./carrier.js";
import { CursorTeller } from "./cursor.js";
import { Painter } from "./painter.js";
import { Search } from "./search.js";
import { Socket } from "./socket.js";
import { Hearing } from "./sound/hearing.js";
import type { Input, Link, News, Order, State } from "./talk.js";
import { readTicket } from "./ticket.js";
import { TIMERS } from "./timers.js";
import { canDecode, Videos } from "./videos.js";
import { type Notice, Viewer } from "./viewer.js";
import { close, connect, firstWay, thisBrowser, type Way } from "./way.js";

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
      if (STANDING.includes(data.input.kind)) {
        standing.set(data.input.kind, data.input);
      } else if (data.input.kind === "move") {
        scope.postMessage({ kind: "taken" });
      } else if (data.input.kind === "blur") {
        // What is on is told anew with what is done next.
        standing.delete("modifiers");
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
  tell("connecting");
  const viewer = await Viewer.load(module);
  const browser = thisBrowser();
  const find = () => connect(ticket, text, browser);
  const [way, videos] = await Promise.all([firstWay(find), canDecode()]);
  if (way === undefined) {
    return tell(browser.transport === undefined ? "no transport" : "unreachable");
  }
  viewer.begin(ticket.secret, control, videos);
  running = new Running(viewer, control, find);
  running.begin(way);
}

/** A session that has begun, over one link after the other. */
class Running {
  readonly hearing: Hearing;
  readonly #viewer: Viewer;
  readonly #videos: Videos;
  readonly #painter: Painter;
  readonly #cursor: CursorTeller | undefined;
  readonly #search: Search<Way>;
  /** None while one is looked for. */
  #link: { readonly way: Way; readonly carrier: Carrier | Socket } | undefined;
  /** When the host let the page in over the last link, if it did. */
  #shownAt: number | undefined;
  /** It has done so over any. */
  #isKnown = false;
  #isOver = false;
  #patience: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #measuring: ReturnType<typeof setTimeout> | undefined;
  #isDrawing = false;
  /** A turn is under way, or will be. */
  #isDue = false;

  constructor(viewer: Viewer, control: boolean, find: () => Promise<Way | undefined>) {
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
    this.#search = new Search<Way>(
      {
        connect: find,
        found: (way) => {
          viewer.resume();
          this.begin(way);
        },
        drop: close,
      },
      TIMERS,
    );
    this.#sayAgain();
  }

  /** Goes on by this way. */
  begin(way: Way): void {
    const onNews = () => this.#soon();
    const carrier =
      way.kind === "streams"
        ? new Carrier(way.transport as unknown as Transport, this.#viewer, onNews)
        : new Socket(way.opened, this.#viewer, onNews);
    this.#link = { way, carrier };
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
    if (this.#isOver) {
      return;
    }
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
        this.#painter.forget();
        this.#sayAgain();
        this.#shown();
        break;
      case "back":
        this.#shown();
        break;
      case "not shown":
        scope.postMessage({ kind: "not shown", why: notice.why });
        break;
      case "missed":
        scope.postMessage({ kind: "missed" });
        break;
      case "over":
        this.#end(notice.over);
        this.#paint(performance.now());
        break;
    }
  }

  #shown(): void {
    clearTimeout(this.#patience);
    this.#shownAt = performance.now();
    this.#isKnown = true;
    tell("shown");
    this.#measure();
    this.#draw();
  }

  #lookAgain(): void {
    this.#link?.carrier.abandon();
    this.#link = undefined;
    if (this.#shownAt !== undefined) {
      tell("away");
      // What was down is up now, but for these.
      this.#sayAgain("modifiers");
    } else if (!this.#isKnown) {
      // Who was never let in may be at no session.
      this.#patience ??= setTimeout(() => this.#giveUp(), FIRST_PATIENCE);
    }
    this.#search.begin(this.#shownAt !== undefined && performance.now() - this.#shownAt > GOOD_AFTER);
    this.#shownAt = undefined;
  }

  #giveUp(): void {
    this.#end("lost");
    this.#link?.carrier.abandon();
    this.#link = undefined;
    this.#viewer.leave();
  }

  #end(state: State): void {
    this.#isOver = true;
    this.#search.stop();
    clearTimeout(this.#patience);
    tell(state);
  }

  /** Tells what the page has said of itself, all or of one kind. */
  #sayAgain(kind?: Input["kind"]): void {
    for (const input of this.#cursor === undefined ? [] : standing.values()) {
      if (kind === undefined || input.kind === kind) {
        this.#viewer.input(input);
      }
    }
  }

  /** Draws with the next frame; never while the page is not seen. */
  #draw(): void {
    if (!this.#isDrawing) {
      this.#isDrawing = true;
      requestAnimationFrame((began) => {
        this.#isDrawing = false;
        this.#paint(began);
      });
    }
  }

  #paint(began: number): void {
    this.#painter.paint(began);
    this.#cursor?.look().catch(raise);
    this.#soon();
  }

  /** Tells what the session is on, and the round-trip time: the browser's, or where it tells none, that of pings. */
  async #measure(): Promise<void> {
    const link = this.#link;
    if (link === undefined) {
      return;
    }
    const { way } = link;
    const carrier = way.kind === "streams" ? "WebTransport" : "WebSocket";
    const measured = way.kind === "streams" ? await roundTrip(way.transport) : undefined;
    if (link === this.#link) {
      scope.postMessage({
        kind: "figures",
        carrier,
        rtt: measured ?? this.#viewer.roundTrip(),
        lost: this.#viewer.loss(),
      });
      clearTimeout(this.#measuring);
      this.#measuring = setTimeout(() => this.#measure(), MEASURE_EVERY);
    }
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

/** What stays as it is until it is told otherwise. */
const STANDING: readonly string[] = ["area", "layout", "modifiers"];

/** Milliseconds between two looks at the link's figures. */
const MEASURE_EVERY = 2000;

/** Milliseconds after which a link has proved good: the next one is looked for at once. */
const GOOD_AFTER = 2000;

/** Milliseconds for which the session is looked for that has never let the page in. */
const FIRST_PATIENCE = 30_000;
