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

/** What page and server show each other: who was not given the page's ticket can know neither. */
export interface Proof {
  readonly shown: Bytes;
  readonly answer: Bytes;
}

/**
 * Waits until the page's server says that the session is behind a line. First the page shows that it was opened by the
 * server's link, and then the server that it is still who served that. Fails when the line is over before, or the answer
 * is wrong.
 */
export function open(line: Line, proof: Proof): Promise<Opened> {
  return new Promise((done, fail) => {
    const opened = { line, heard: [] as Uint8Array[], isOver: false };
    line.binaryType = "arraybuffer";
    line.onopen = () => line.send(proof.shown);
    line.onclose = () => {
      opened.isOver = true;
      fail(new Error("the page's server has no way to the session"));
    };
    line.onmessage = ({ data }) => {
      const answer = bytesOf(data);
      if (answer.length !== proof.answer.length || !answer.every((byte, at) => byte === proof.answer[at])) {
        line.onmessage = null;
        line.close();
        fail(new Error("another server is there now"));
        return;
      }
      line.onmessage = ({ data }) => void opened.heard.push(bytesOf(data));
      done(opened);
    };
  });
}

/** Those for a ticket, as text; good for one line. */
export async function proofOf(ticket: string): Promise<Proof> {
  const [text, number] = [new TextEncoder().encode(ticket), crypto.getRandomValues(new Uint8Array(32))];
  const shown = await digest("wayferry socket 1 page\n", text);
  return {
    shown: new Uint8Array([...shown, ...number]),
    answer: await digest("wayferry socket 1 server\n", new Uint8Array([...number, ...text])),
  };
}

async function digest(label: string, rest: Uint8Array): Promise<Bytes> {
  const all = new Uint8Array([...new TextEncoder().encode(label), ...rest]);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all));
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
