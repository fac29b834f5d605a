/**
 * Decides by which way a page comes to its session: WebTransport, or a WebSocket by way of the page's own server.
 *
 * All places are tried at once by WebTransport; the WebSocket is tried, too, when they have failed or taken long. Who is
 * there first wins. Invariant: of all that was tried at most one stays open, the one that is given.
 */

import { type Line, type Opened, open, proofOf } from "./socket.js";
import type { Ticket } from "./ticket.js";

/** A way that is open. */
export type Way =
  | { readonly kind: "streams"; readonly transport: WebTransport }
  | { readonly kind: "socket"; readonly opened: Opened };

/** What a browser has for it. */
export interface Browser {
  /** A transport to a host; where there is none, the browser has no WebTransport. */
  readonly transport: ((address: string, certificate: Uint8Array<ArrayBuffer>) => WebTransport) | undefined;
  line(address: string): Line;
  /** Where the page is from. */
  readonly origin: string;
}

/** The first way that is ready; nothing where there is none. `link` is the ticket as text. */
export async function connect(ticket: Ticket, link: string, browser: Browser): Promise<Way | undefined> {
  let isWon = false;
  const { transport } = browser;
  const streams = transport === undefined ? [] : ticket.places.map((place) => byStreams(place));
  const all = [...streams, bySocket()];
  const first = await Promise.any(all).catch(() => undefined);
  isWon = true;
  for (const attempt of all) {
    attempt.then((other) => other === first || close(other)).catch(() => undefined);
  }
  return first;

  async function byStreams(place: string): Promise<Way> {
    const made = (transport as NonNullable<typeof transport>)(`https://${place}${PLACE}`, ticket.certificate);
    // What it ends with is heard elsewhere.
    made.closed.catch(() => undefined);
    await patiently(made.ready, () => made.close());
    return { kind: "streams", transport: made };
  }

  async function bySocket(): Promise<Way> {
    await Promise.race([Promise.all(streams.map(failure)), pause(HEAD_START)]);
    const proof = await proofOf(link);
    if (isWon) {
      throw new Error("another way was ready");
    }
    const line = browser.line(`${browser.origin.replace(/^http/, "ws")}${PLACE}`);
    return { kind: "socket", opened: await patiently(open(line, proof), () => line.close()) };
  }
}

/**
 * The first way of a first visit. What is busy on the way there, as with too many guests at once, may not be a moment
 * later; so it is asked again for some time.
 */
export async function firstWay(attempt: () => Promise<Way | undefined>): Promise<Way | undefined> {
  const until = performance.now() + FIRST_PATIENCE;
  for (;;) {
    const way = await attempt();
    if (way !== undefined || performance.now() + REST >= until) {
      return way;
    }
    await pause(REST);
  }
}

/** Ends when it has failed, and never where it has not. */
function failure(attempt: Promise<unknown>): Promise<void> {
  return new Promise((done) => attempt.catch(() => done()));
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((done) => setTimeout(done, milliseconds));
}

/** What comes of an attempt, which is given up when it takes too long. */
function patiently<T>(attempt: Promise<T>, giveUp: () => void): Promise<T> {
  const timer = setTimeout(giveUp, PATIENCE);
  return attempt.finally(() => clearTimeout(timer));
}

/** Closes one that is not needed. */
export function close(way: Way): void {
  if (way.kind === "streams") {
    way.transport.close();
  } else {
    way.opened.line.close();
  }
}

/** The browser that this is. */
export function thisBrowser(): Browser {
  return {
    transport:
      "WebTransport" in globalThis
        ? (address, value) =>
            new WebTransport(address, { serverCertificateHashes: [{ algorithm: "sha-256", value }] })
        : undefined,
    line: (address) => new WebSocket(address) as unknown as Line,
    origin: location.origin,
  };
}

/** Where a session is at its host, and at the page's server. */
const PLACE = "/wayferry/1";
/** Milliseconds for which WebTransport is tried alone: longer than it takes where it works at all. */
const HEAD_START = 2000;
/** Milliseconds that an attempt may take. */
const PATIENCE = 10_000;
/** Milliseconds within which the last attempt of a first visit begins, and between two of them. */
const FIRST_PATIENCE = 20_000;
const REST = 1000;
