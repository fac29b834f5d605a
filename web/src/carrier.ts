/**
 * Moves a viewer's streams and datagrams over WebTransport.
 *
 * Streams are opened one after the other, in the order in which the viewer wants them, and each is read in order. It
 * looks into no byte. Invariant: once the link is over, the viewer has been told so, and is told nothing more.
 */

import type { Bytes, Viewer } from "./viewer.js";

/** What is used of a `WebTransport`. */
export interface Transport {
  readonly closed: Promise<{ closeCode?: number; reason?: string }>;
  readonly incomingUnidirectionalStreams: ReadableStream<ReadableStream<Uint8Array>>;
  readonly datagrams: {
    readonly readable: ReadableStream<Uint8Array>;
    readonly writable: WritableStream<Bytes>;
    /** How many that have come wait to be read; the oldest are dropped. */
    incomingHighWaterMark?: number;
  };
  createUnidirectionalStream(options: { sendOrder: number }): Promise<WritableStream<Bytes>>;
  close(info: { closeCode: number; reason: string }): void;
}

/** What is used of a {@link Viewer}. */
export type Carried = Pick<
  Viewer,
  | "streamData"
  | "streamFinished"
  | "streamReset"
  | "streamStopped"
  | "datagram"
  | "closed"
  | "lost"
  | "unsent"
  | "pollTransmit"
>;

/** A stream that the viewer writes to. */
interface Outgoing {
  /** Ends when all that was said so far has been done. */
  done: Promise<void>;
  writer: WritableStreamDefaultWriter<Bytes> | undefined;
}

/** See the module. */
export class Carrier {
  readonly #transport: Transport;
  readonly #viewer: Carried;
  readonly #onNews: () => void;
  readonly #outgoing = new Map<number, Outgoing>();
  readonly #incoming = new Map<number, ReadableStreamDefaultReader<Uint8Array>>();
  /** Ends when the last stream is open. */
  #opening: Promise<void> = Promise.resolve();
  readonly #datagrams: WritableStreamDefaultWriter<Bytes>;
  #unsent = 0;
  #isOver = false;

  /** Begins to move what there is; `onNews` is called when the viewer was told something. */
  constructor(transport: Transport, viewer: Carried, onNews: () => void) {
    this.#transport = transport;
    this.#viewer = viewer;
    this.#onNews = onNews;
    // One waits unless more is said, and rows of repair come several at once.
    transport.datagrams.incomingHighWaterMark = DATAGRAMS_WAITING;
    this.#datagrams = transport.datagrams.writable.getWriter();
    transport.closed.then(
      ({ closeCode, reason }) => this.#end(() => viewer.closed(closeCode ?? 0, reason ?? "")),
      () => this.#end(() => viewer.lost()),
    );
    this.#accept();
    this.#hear();
  }

  /** Does what the viewer wants done. */
  pump(): void {
    for (let next = this.#viewer.pollTransmit(); next !== undefined; next = this.#viewer.pollTransmit()) {
      if (this.#isOver) {
        continue;
      }
      switch (next.kind) {
        case "open":
          this.#open(next.stream, next.priority);
          break;
        case "data":
          this.#write(next.stream, next.bytes, next.finish);
          break;
        case "prioritise":
          // Scripts set an order when they open a stream; the page's own streams keep it.
          break;
        case "reset": {
          const { code, stream } = next;
          this.#then(stream, (writer) => writer.abort(error(code)));
          this.#forget(stream);
          break;
        }
        case "stop":
          this.#incoming.get(next.stream)?.cancel(error(next.code)).catch(ignore);
          this.#incoming.delete(next.stream);
          break;
        case "datagram":
          this.#datagrams.write(next.bytes).catch(ignore);
          break;
        case "close":
          this.#close(next.code, next.reason);
          break;
      }
    }
  }

  /** Nothing more comes of it: the viewer goes on over another one. */
  abandon(): void {
    if (!this.#isOver) {
      this.#close(LINK_LOST, "another link is looked for");
    }
  }

  #open(stream: number, priority: number): void {
    const outgoing: Outgoing = { done: Promise.resolve(), writer: undefined };
    this.#opening = this.#opening.then(async () => {
      const writable = await this.#create(priority);
      outgoing.writer = writable.getWriter();
      outgoing.writer.closed.catch((reason: unknown) => this.#stopped(stream, reason));
    });
    // A link that opens no more streams is over, and says so by itself.
    this.#opening = this.#opening.catch(ignore);
    outgoing.done = this.#opening;
    this.#outgoing.set(stream, outgoing);
  }

  /**
   * The next stream, as soon as there may be one: browsers refuse what is beyond the host's limit, which the host
   * raises when it lets the page in, and beside that word.
   */
  async #create(sendOrder: number): Promise<WritableStream<Bytes>> {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
      try {
        return await this.#transport.createUnidirectionalStream({ sendOrder });
      } catch (reason) {
        if (this.#isOver) {
          throw reason;
        }
        await new Promise((done) => setTimeout(done, pause));
      }
    }
  }

  #write(stream: number, bytes: Bytes, finish: boolean): void {
    this.#count(bytes.length);
    this.#then(stream, async (writer) => {
      if (bytes.length > 0) {
        await writer.write(bytes);
      }
      if (finish) {
        await writer.close();
      }
    }).finally(() => {
      this.#count(-bytes.length);
      // There may be more to send for which there was no room.
      this.#tell(() => undefined);
    });
    if (finish) {
      this.#forget(stream);
    }
  }

  /** Does something to a stream when what was said before is done. */
  async #then(
    stream: number,
    act: (writer: WritableStreamDefaultWriter<Bytes>) => Promise<void>,
  ): Promise<void> {
    const outgoing = this.#outgoing.get(stream);
    if (outgoing === undefined) {
      return;
    }
    const done = outgoing.done.then(() => (outgoing.writer ? act(outgoing.writer) : undefined));
    outgoing.done = done.catch(ignore);
    await outgoing.done;
  }

  /** Nothing more is said to a stream. */
  #forget(stream: number): void {
    this.#outgoing.delete(stream);
  }

  #stopped(stream: number, reason: unknown): void {
    const code = codeOf(reason);
    if (code !== undefined && this.#outgoing.delete(stream)) {
      this.#tell(() => this.#viewer.streamStopped(stream, code));
    }
  }

  #count(bytes: number): void {
    this.#unsent += bytes;
    if (!this.#isOver) {
      this.#viewer.unsent(this.#unsent);
    }
  }

  async #accept(): Promise<void> {
    const streams = this.#transport.incomingUnidirectionalStreams.getReader();
    try {
      for (let number = 0; ; number += 1) {
        const { done, value } = await streams.read();
        if (done) {
          return;
        }
        this.#read(number, value);
      }
    } catch {
      // The link is over, and says so by itself.
    }
  }

  async #read(stream: number, readable: ReadableStream<Uint8Array>): Promise<void> {
    const reader = readable.getReader();
    this.#incoming.set(stream, reader);
    try {
      for (let offset = 0; ; ) {
        const { done, value } = await reader.read();
        const from = offset;
        if (done) {
          // What was stopped ends too.
          if (this.#incoming.delete(stream)) {
            this.#tell(() => this.#viewer.streamFinished(stream, from));
          }
          return;
        }
        offset += value.length;
        this.#tell(() => this.#viewer.streamData(stream, from, value));
      }
    } catch (reason) {
      const code = codeOf(reason);
      if (this.#incoming.delete(stream) && code !== undefined) {
        this.#tell(() => this.#viewer.streamReset(stream, code));
      }
    }
  }

  async #hear(): Promise<void> {
    const reader = this.#transport.datagrams.readable.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          return;
        }
        this.#tell(() => this.#viewer.datagram(value));
      }
    } catch {
      // The link is over, and says so by itself.
    }
  }

  #close(code: number, reason: string): void {
    this.#isOver = true;
    this.#transport.close({ closeCode: code, reason });
  }

  #end(tell: () => void): void {
    this.#tell(tell);
    this.#isOver = true;
  }

  #tell(tell: () => void): void {
    if (this.#isOver) {
      return;
    }
    try {
      tell();
      this.#onNews();
    } catch (fault) {
      // The fault is none of the stream's.
      this.#isOver = true;
      raise(fault);
    }
  }
}

/** Lets a fault reach the page, from wherever it was met. */
export function raise(fault: unknown): void {
  queueMicrotask(() => {
    throw fault;
  });
}

/** What an end of a stream says, if the other side or this one has ended it. */
function codeOf(reason: unknown): number | undefined {
  const { source, streamErrorCode } = (reason ?? {}) as Partial<WebTransportError>;
  return source === "stream" ? (streamErrorCode ?? 0) : undefined;
}

/** What a stream is given up with. */
function error(streamErrorCode: number): unknown {
  if (typeof WebTransportError === "undefined") {
    return streamErrorCode;
  }
  try {
    return new WebTransportError(GIVEN_UP, { source: "stream", streamErrorCode } as WebTransportErrorOptions);
  } catch {
    // Chromium has the constructor of an earlier draft, and refuses any other.
    const Earlier = WebTransportError as unknown as EarlierError;
    return new Earlier({ message: GIVEN_UP, streamErrorCode });
  }
}

/** The constructor of `WebTransportError` up to the draft of 2022. */
type EarlierError = new (init: { message: string; streamErrorCode: number }) => WebTransportError;

const GIVEN_UP = "given up";

/** What a host is told that is not to take it for the end of the session. */
const LINK_LOST = 7;

function ignore(): void {}

/** Milliseconds until a stream that was refused is tried again, for the first time and at most. */
const FIRST_PAUSE = 2;
const LAST_PAUSE = 256;

/** Datagrams that may wait: rows of several updates. */
const DATAGRAMS_WAITING = 256;
