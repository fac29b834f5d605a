/**
 * Moves a viewer's bytes over a WebSocket, where there is no WebTransport.
 *
 * The viewer puts all of its streams on it by itself. It looks into no byte. Invariant: once the link is over, the viewer
 * has been told so, and is told nothing more.
 */

import { raise } from "./carrier.js";
import type { Bytes, Viewer } from "./viewer.js";

/** What is used of a `WebSocket`. */
export interface Line {
  binaryType: string;
  /** Bytes that it has and has not sent. */
  readonly bufferedAmount: number;
  onopen: (() => void) | null;
  onmessage: ((message: { readonly data: unknown }) => void) | null;
  onclose: (() => void) | null;
  send(bytes: Bytes): void;
  close(): void;
}

/** One on which the session is heard. */
export interface Opened {
  readonly line: Line;
  /** What has been heard and was not looked at. */
  readonly heard: readonly Uint8Array[];
  readonly isOver: boolean;
}

/** What is used of a {@link Viewer}. */
export type Told = Pick<Viewer, "socketBegin" | "socketData" | "socketPoll" | "lost">;

/**
 * Waits until the session is heard on a line, on which the page shows first that it was opened by a link. Fails when the
 * line is over before that.
 */
export function open(line: Line, proof: Bytes): Promise<Opened> {
  return new Promise((done, fail) => {
    const opened = { line, heard: [] as Uint8Array[], isOver: false };
    line.binaryType = "arraybuffer";
    line.onopen = () => line.send(proof);
    line.onmessage = ({ data }) => {
      opened.heard.push(bytesOf(data));
      done(opened);
    };
    line.onclose = () => {
      opened.isOver = true;
      fail(new Error("the page's server has no way to the session"));
    };
  });
}

/** What the page shows there: who was not given its ticket cannot know it. */
export async function proofOf(ticket: string): Promise<Bytes> {
  const text = new TextEncoder().encode(`wayferry socket 1\n${ticket}`);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", text));
}

/** See the module. */
export class Socket {
  readonly #line: Line;
  readonly #viewer: Told;
  readonly #onNews: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** Begins to move what there is; `onNews` is called when the viewer was told something. */
  constructor(opened: Opened, viewer: Told, onNews: () => void) {
    this.#line = opened.line;
    this.#viewer = viewer;
    this.#onNews = onNews;
    viewer.socketBegin();
    for (const bytes of opened.heard) {
      this.#tell(() => viewer.socketData(bytes));
    }
    this.#line.onmessage = ({ data }) => this.#tell(() => viewer.socketData(bytesOf(data)));
    this.#line.onclose = () => this.#end();
    if (opened.isOver) {
      this.#end();
    }
  }

  /** Does what the viewer wants done. */
  pump(): void {
    while (!this.#isOver) {
      const next = this.#viewer.socketPoll(this.#line.bufferedAmount);
      switch (next.kind) {
        case "nothing":
          return;
        case "wait":
          // Browsers do not say when they have sent more.
          clearTimeout(this.#timer);
          this.#timer = setTimeout(() => this.pump(), PAUSE);
          return;
        case "bytes":
          this.#line.send(next.bytes);
          break;
        case "last":
          this.#line.send(next.bytes);
          this.abandon();
          break;
      }
    }
  }

  /** Tells the viewer nothing more, and closes the socket behind what was sent. */
  abandon(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#line.close();
  }

  #end(): void {
    this.#tell(() => this.#viewer.lost());
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #tell(tell: () => void): void {
    if (this.#isOver) {
      return;
    }
    try {
      tell();
      this.#onNews();
    } catch (fault) {
      // The fault is none of the line's.
      this.#isOver = true;
      raise(fault);
    }
  }
}

/** A server that says text has nothing to say here. */
function bytesOf(data: unknown): Uint8Array {
  return data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array();
}

/** Milliseconds between two looks at what the browser has sent. */
const PAUSE = 5;
