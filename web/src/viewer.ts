/**
 * The viewer that is WebAssembly, with values in place of numbers and places in memory.
 *
 * It decides nothing. Invariant: what it gives is a copy, good for as long as it is held.
 */

import type { Ask } from "./sound/store.js";
import type { Clip, Input } from "./talk.js";

/** What the module exports. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  input(length: number): number;
  out(): number;
  out_length(): number;
  number(index: number): number;
  begin(now: number, control: number, videos: number): number;
  resume(now: number): void;
  stream_data(now: number, stream: number, offset: number): void;
  stream_finished(now: number, stream: number, length: number): void;
  stream_reset(now: number, stream: number, code: number): void;
  stream_stopped(now: number, stream: number, code: number): void;
  datagram(now: number): void;
  closed(now: number, code: number): void;
  lost(now: number): void;
  unsent(now: number, bytes: number): void;
  socket_begin(now: number): void;
  socket_data(now: number): void;
  socket_poll(now: number, buffered: number): number;
  round_trip(): number;
  loss(): number;
  on_timeout(now: number): void;
  next_timeout(): number;
  leave(now: number): void;
  poll_transmit(now: number): number;
  poll_notice(): number;
  wants_frame(): number;
  on_frame(now: number, began: number): void;
  drawing(): void;
  text(): void;
  damage(program: number, low: number, high: number): number;
  pixels(
    program: number,
    low: number,
    high: number,
    x: number,
    y: number,
    width: number,
    height: number,
  ): void;
  set_area(now: number, width: number, height: number, scale: number): void;
  pointer_move(now: number, program: number, low: number, high: number, x: number, y: number): void;
  pointer_leave(now: number): void;
  button(now: number, code: number, pressed: number): void;
  wheel(now: number, dx: number, dy: number, stepsX: number, stepsY: number): void;
  key(now: number, code: number, level: number, pressed: number): void;
  modifiers(now: number, bits: number): void;
  layout(now: number): void;
  type_text(now: number): void;
  offer(now: number, picture: number, isNew: number): void;
  poll_copied(): number;
  blur(now: number): void;
  focus_window(now: number, program: number, low: number, high: number): void;
  close_window(now: number, program: number, low: number, high: number): void;
  cursor(): number;
  poll_task(): number;
  decoded_frame(now: number, number: number, layout: number): void;
  undecodable_frame(now: number, number: number): void;
  may_sound(): number;
  listen(now: number, codec: number): void;
  poll_encoded(): number;
  decoded(number: number): void;
  undecoded(): void;
  ask_sound(now: number, held: number, spare: number, missed: number, latency: number): void;
  answer_sound(now: number): number;
}

/** What is to be done with the link. */
export type Transmit =
  | { readonly kind: "open"; readonly stream: number; readonly priority: number }
  | { readonly kind: "data"; readonly stream: number; readonly bytes: Bytes; readonly finish: boolean }
  | { readonly kind: "prioritise"; readonly stream: number; readonly priority: number }
  | { readonly kind: "reset"; readonly stream: number; readonly code: number }
  | { readonly kind: "stop"; readonly stream: number; readonly code: number }
  | { readonly kind: "datagram"; readonly bytes: Bytes }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** What is to be done with one stream of bytes. */
export type Next =
  | { readonly kind: "nothing" }
  /** To ask again when the browser has sent more. */
  | { readonly kind: "wait" }
  /** To send it, and ask again. */
  | { readonly kind: "bytes"; readonly bytes: Bytes }
  /** To send it, and nothing more. */
  | { readonly kind: "last"; readonly bytes: Bytes };

/** How it ended. */
export type Over =
  | "done"
  | "refused"
  | "full"
  | "incompatible"
  | "lost"
  | "broken"
  | "taken"
  | "revoked"
  | "forgotten";

/** What has happened. */
export type Notice =
  | { readonly kind: "welcome" }
  /** The link is lost, and {@link Viewer.resume} goes on over another; the session does, or tells all anew. */
  | { readonly kind: "away" | "back" | "anew" }
  /** Keys are passed over until those that wait have gone. */
  | { readonly kind: "missed" }
  | { readonly kind: "not shown"; readonly why: string }
  | { readonly kind: "over"; readonly over: Over };

/** What the pointer looks like: nothing said, nothing at all, a surface in words, or a name that CSS has. */
export type CursorShape =
  | { readonly kind: "default" | "hidden" }
  | { readonly kind: "surface"; readonly words: Int32Array }
  | { readonly kind: "name"; readonly name: string };

/** Names a surface. */
export interface Surface {
  readonly program: number;
  readonly low: number;
  readonly high: number;
}

/** A part of something, in whole pixels. */
export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Sound that is to be decoded, and the number by which it is answered. */
export interface Encoded {
  readonly number: number;
  readonly data: Bytes;
}

/** What the decoders of videos are to do. */
export type Task =
  | { readonly kind: "decode"; readonly decoder: number; readonly frame: EncodedFrame }
  | { readonly kind: "end"; readonly decoder: number };

/** A frame that is to be decoded, and the number by which it is answered. */
export interface EncodedFrame extends Encoded {
  readonly isKey: boolean;
}

/** Bytes that belong to who has them. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** See the module. */
export class Viewer {
  readonly #exports: Exports;
  readonly #begun = performance.now();

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** Loads the module. */
  static async load(module: BufferSource): Promise<Viewer> {
    const { instance } = await WebAssembly.instantiate(module, {});
    return new Viewer(instance.exports as unknown as Exports);
  }

  /** Begins a session with a ticket's id and secret, as its display or as a view; `videos` can be decoded. */
  begin(secret: Bytes, control: boolean, videos: boolean): void {
    const incarnation = crypto.getRandomValues(new Uint8Array(32));
    this.#put(new Uint8Array([...secret, ...incarnation]));
    this.#exports.begin(this.#now(), Number(control), Number(videos));
  }

  /** Goes on over another link, on which nothing was said. */
  resume(): void {
    this.#exports.resume(this.#now());
  }

  streamData(stream: number, offset: number, bytes: Uint8Array): void {
    this.#put(bytes);
    this.#exports.stream_data(this.#now(), stream, offset);
  }

  streamFinished(stream: number, length: number): void {
    this.#exports.stream_finished(this.#now(), stream, length);
  }

  streamReset(stream: number, code: number): void {
    this.#exports.stream_reset(this.#now(), stream, code);
  }

  streamStopped(stream: number, code: number): void {
    this.#exports.stream_stopped(this.#now(), stream, code);
  }

  datagram(bytes: Uint8Array): void {
    this.#put(bytes);
    this.#exports.datagram(this.#now());
  }

  /** The other side has ended the session. */
  closed(code: number, reason: string): void {
    this.#put(new TextEncoder().encode(reason));
    this.#exports.closed(this.#now(), code);
  }

  lost(): void {
    this.#exports.lost(this.#now());
  }

  /** So many bytes have not left yet. */
  unsent(bytes: number): void {
    this.#exports.unsent(this.#now(), bytes);
  }

  /** The session is on one stream of bytes from now on. */
  socketBegin(): void {
    this.#exports.socket_begin(this.#now());
  }

  socketData(bytes: Uint8Array): void {
    this.#put(bytes);
    this.#exports.socket_data(this.#now());
  }

  /** What is to be sent next, where so many bytes have not left yet. */
  socketPoll(buffered: number): Next {
    switch (this.#exports.socket_poll(this.#now(), buffered)) {
      case 1:
        return { kind: "bytes", bytes: this.#take() };
      case 2:
        return { kind: "last", bytes: this.#take() };
      case 3:
        return { kind: "wait" };
      default:
        return { kind: "nothing" };
    }
  }

  /** How many milliseconds a ping takes, once one has come back. */
  roundTrip(): number | undefined {
    const trip = this.#exports.round_trip();
    return trip < 0 ? undefined : trip;
  }

  /** What of the packets on their way here is lost, in percent, once enough have come. */
  loss(): number | undefined {
    const loss = this.#exports.loss();
    return loss < 0 ? undefined : loss;
  }

  onTimeout(): void {
    this.#exports.on_timeout(this.#now());
  }

  /** Milliseconds until {@link onTimeout} is to be called; nothing for never. */
  nextTimeout(): number | undefined {
    const at = this.#exports.next_timeout();
    return at < 0 ? undefined : Math.max(0, at - this.#now());
  }

  leave(): void {
    this.#exports.leave(this.#now());
  }

  pollTransmit(): Transmit | undefined {
    const kind = this.#exports.poll_transmit(this.#now());
    const [first, second] = [this.#exports.number(0) >>> 0, this.#exports.number(1) >>> 0];
    switch (kind) {
      case 1:
        return { kind: "open", stream: first, priority: second };
      case 2:
        return { kind: "data", stream: first, bytes: this.#take(), finish: second === 1 };
      case 3:
        return { kind: "prioritise", stream: first, priority: second };
      case 4:
        return { kind: "reset", stream: first, code: second };
      case 5:
        return { kind: "stop", stream: first, code: second };
      case 6:
        return { kind: "datagram", bytes: this.#take() };
      case 7:
        return { kind: "close", code: first, reason: this.#text() };
      default:
        return undefined;
    }
  }

  pollNotice(): Notice | undefined {
    const kind = this.#exports.poll_notice();
    const over = OVER[kind - FIRST_OVER];
    if (over !== undefined) {
      return { kind: "over", over };
    }
    switch (kind) {
      case 1:
        return { kind: "welcome" };
      case 2:
        return { kind: "not shown", why: this.#text() };
      case 3:
        return { kind: "away" };
      case 4:
        return { kind: "back" };
      case 5:
        return { kind: "anew" };
      case 6:
        return { kind: "missed" };
      default:
        return undefined;
    }
  }

  wantsFrame(): boolean {
    return this.#exports.wants_frame() !== 0;
  }

  /** Everything that there is has been drawn, in the frame that the browser began then by `performance.now()`. */
  onFrame(began: number): void {
    this.#exports.on_frame(this.#now(), began - this.#begun);
  }

  /** What there is to be drawn: words, and the text that they name. */
  drawing(): { words: Int32Array<ArrayBuffer>; text: Bytes } {
    this.#exports.drawing();
    const words = new Int32Array(this.#take().buffer);
    this.#exports.text();
    return { words, text: this.#take() };
  }

  /** What is to be painted anew of a surface. */
  damage(surface: Surface): "all" | Rect[] {
    const count = this.#exports.damage(surface.program, surface.low, surface.high);
    if (count < 0) {
      return "all";
    }
    const words = new Uint32Array(this.#take().buffer);
    return Array.from({ length: count }, (_, at) => {
      const [x = 0, y = 0, width = 0, height = 0] = words.slice(at * 4);
      return { x, y, width, height };
    });
  }

  /** The pixels of a part of a surface, as `ImageData` has them. */
  pixels(surface: Surface, part: Rect): Uint8ClampedArray<ArrayBuffer> {
    const { program, low, high } = surface;
    this.#exports.pixels(program, low, high, part.x, part.y, part.width, part.height);
    return new Uint8ClampedArray(this.#take().buffer);
  }

  input(input: Input): void {
    const now = this.#now();
    switch (input.kind) {
      case "area":
        this.#exports.set_area(now, input.size.width, input.size.height, input.size.scale);
        break;
      case "focus":
        this.#exports.focus_window(now, ...named(input.key));
        break;
      case "close":
        this.#exports.close_window(now, ...named(input.key));
        break;
      case "move":
        this.#exports.pointer_move(now, ...named(input.key), input.x, input.y);
        break;
      case "leave":
        this.#exports.pointer_leave(now);
        break;
      case "button":
        this.#exports.button(now, input.code, Number(input.pressed));
        break;
      case "wheel":
        this.#exports.wheel(now, input.dx, input.dy, input.stepsX, input.stepsY);
        break;
      case "key":
        this.#put(new TextEncoder().encode(input.text));
        this.#exports.key(now, input.code, input.level, Number(input.pressed));
        break;
      case "modifiers":
        this.#exports.modifiers(now, input.bits);
        break;
      case "layout":
        this.#put(new TextEncoder().encode(input.pairs));
        this.#exports.layout(now);
        break;
      case "type":
        this.#put(new TextEncoder().encode(input.text));
        this.#exports.type_text(now);
        break;
      case "offer": {
        const bytes = bytesOf(input.clip);
        if (bytes !== undefined) {
          this.#put(bytes);
          this.#exports.offer(now, Number(input.clip.kind === "picture"), Number(input.isNew));
        }
        break;
      }
      case "blur":
        this.#exports.blur(now);
        break;
    }
  }

  /** What a program has copied since. */
  pollCopied(): Clip | undefined {
    switch (this.#exports.poll_copied()) {
      case 1:
        return { kind: "text", text: this.#text() };
      case 2:
        return { kind: "picture", picture: new Blob([this.#take()], { type: "image/png" }) };
      default:
        return undefined;
    }
  }

  /** What the pointer looks like over the windows. */
  cursor(): CursorShape {
    const kind = this.#exports.cursor();
    switch (kind) {
      case 1:
        return { kind: "hidden" };
      case 2:
        return { kind: "surface", words: new Int32Array(this.#take().buffer) };
      case 3:
        return { kind: "name", name: this.#text() };
      default:
        return { kind: "default" };
    }
  }

  /** What the decoders of videos are to do next. */
  pollTask(): Task | undefined {
    const kind = this.#exports.poll_task();
    const [decoder, number] = [this.#exports.number(0) >>> 0, this.#exports.number(1) >>> 0];
    switch (kind) {
      case 1: {
        const isKey = this.#exports.number(2) === 1;
        return { kind: "decode", decoder, frame: { number, isKey, data: this.#take() } };
      }
      case 2:
        return { kind: "end", decoder };
      default:
        return undefined;
    }
  }

  /** A frame was decoded: its planes, without gaps. */
  decodedFrame(number: number, layout: "I420" | "NV12", planes: Uint8Array): void {
    this.#put(planes);
    this.#exports.decoded_frame(this.#now(), number, Number(layout === "NV12"));
  }

  /** A frame will not be decoded, nor what follows on it. */
  undecodableFrame(number: number): void {
    this.#exports.undecodable_frame(this.#now(), number);
  }

  /** Whether the session has sound that may be heard. */
  maySound(): boolean {
    return this.#exports.may_sound() !== 0;
  }

  /** Sound is wanted not at all (0), in Opus (1), or as samples (2). */
  listen(codec: number): void {
    this.#exports.listen(this.#now(), codec);
  }

  /** What is to be decoded next. */
  pollEncoded(): Encoded | undefined {
    const number = this.#exports.poll_encoded() >>> 0;
    return number === 0 ? undefined : { number, data: this.#take() };
  }

  /** That was decoded, and what was to be before will not be: the samples of the left channel, then of the right. */
  decoded(number: number, samples: Float32Array): void {
    this.#put(new Uint8Array(samples.buffer));
    this.#exports.decoded(number);
  }

  /** Nothing of what was to be decoded will be. */
  undecoded(): void {
    this.#exports.undecoded();
  }

  /** The loudspeaker asks for sound, which is heard so many milliseconds after it was played. */
  askSound({ held, spare, missed }: Ask, latency: number): void {
    this.#exports.ask_sound(this.#now(), held, spare, missed, latency);
  }

  /** The answer: a sample of the left and one of the right by turns. */
  answerSound(): Float32Array<ArrayBuffer> | undefined {
    return this.#exports.answer_sound(this.#now()) === 0 ? undefined : new Float32Array(this.#take().buffer);
  }

  #now(): number {
    return performance.now() - this.#begun;
  }

  #put(bytes: Uint8Array): void {
    const place = this.#exports.input(bytes.length);
    new Uint8Array(this.#exports.memory.buffer, place, bytes.length).set(bytes);
  }

  #take(): Bytes {
    const length = this.#exports.out_length();
    return new Uint8Array(this.#exports.memory.buffer as ArrayBuffer, this.#exports.out(), length).slice();
  }

  #text(): string {
    return new TextDecoder().decode(this.#take());
  }
}

/** What only workers have. */
declare const FileReaderSync: new () => { readAsArrayBuffer(blob: Blob): ArrayBuffer };

/** At once, so that nothing which follows overtakes it; nothing where it is a file that cannot be read. */
function bytesOf(clip: Clip): Uint8Array | undefined {
  if (clip.kind === "text") {
    return new TextEncoder().encode(clip.text);
  }
  try {
    return new Uint8Array(new FileReaderSync().readAsArrayBuffer(clip.picture));
  } catch {
    return undefined;
  }
}

/** The numbers of a window's key: its program, and the lower and the higher word of its surface. */
function named(key: string): [number, number, number] {
  const [program = 0, high = 0, low = 0] = key.split("/").map(Number);
  return [program, low, high];
}

const FIRST_OVER = 10;
const OVER: readonly Over[] = [
  "done",
  "refused",
  "full",
  "incompatible",
  "lost",
  "broken",
  "taken",
  "revoked",
  "forgotten",
];
