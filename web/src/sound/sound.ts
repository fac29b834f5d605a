/**
 * The page's sound: a button, and the browser's way to play.
 *
 * Browsers let a page play once its user has done something there, so sound begins with the first click or key; who
 * has turned it off is asked again by nothing. What plays is loaded before, as soon as there is sound: the server
 * of the page may have gone by the first click. Invariant: the worker listens exactly while the browser plays.
 */

import type { Order } from "../talk.js";
import { press } from "../toggles.js";

/** See the module. */
export class Sound {
  readonly #button: HTMLElement;
  readonly #order: (order: Order, moved: Transferable[]) => void;
  readonly #say: (text: string) => void;
  #context: AudioContext | undefined;
  /** The context has what plays. */
  #isLoaded = false;
  #loudspeaker: AudioWorkletNode | undefined;
  /** The user has not turned it off. */
  #isWanted = true;
  #isOn = false;

  constructor(
    button: HTMLElement,
    order: (order: Order, moved: Transferable[]) => void,
    say: (text: string) => void,
  ) {
    this.#button = button;
    this.#order = order;
    this.#say = say;
    button.addEventListener("click", () => {
      this.#isWanted = !this.#isOn;
      this.#settle();
    });
    for (const kind of ["pointerdown", "pointerup", "keydown"]) {
      const begin = ({ target }: Event) => button.contains(target as Node) || this.#settle();
      addEventListener(kind, begin, { capture: true, passive: true });
    }
  }

  /** There is a session with sound, and a worker for it; or there is none. */
  offer(hasSound: boolean): void {
    this.#button.hidden = !hasSound;
    this.#isOn = false;
    press(this.#button, false);
    if (hasSound) {
      this.#load();
    }
    if (navigator.userActivation?.hasBeenActive || !hasSound) {
      this.#settle();
    }
  }

  /** Tells how long it takes until what is played is heard: browsers know it better with time. */
  measure(): void {
    const { baseLatency = 0, outputLatency = 0 } = this.#context ?? {};
    if (this.#isOn) {
      this.#order({ kind: "latency", latency: 1000 * (baseLatency + outputLatency) }, []);
    }
  }

  /** Makes the browser play or not, as is wanted. */
  #settle(): void {
    const isWanted = this.#isWanted && !this.#button.hidden;
    if (isWanted) {
      this.#load();
    }
    const done = isWanted ? this.#context?.resume() : this.#context?.suspend();
    // Where it may not play, it is asked again after the next key or click.
    done?.catch(() => undefined);
    this.#tell();
  }

  /** Has the browser ready to play, unless it is. */
  #load(): void {
    if (this.#context === undefined) {
      this.#make().catch(() => this.#fail());
    }
  }

  async #make(): Promise<void> {
    const context = new AudioContext({ sampleRate: 48_000, latencyHint: "interactive" });
    this.#context = context;
    context.addEventListener("statechange", () => this.#tell());
    await context.audioWorklet.addModule("loudspeaker.js");
    this.#isLoaded = true;
    this.#tell();
  }

  /** Only the button tries again: what is typed would not be the wish for that. */
  #fail(): void {
    this.#context?.close().catch(() => undefined);
    this.#context = undefined;
    this.#isWanted = false;
    this.#say("Sound cannot be played. The sound button tries again.");
  }

  #connect(context: AudioContext): AudioWorkletNode {
    const options = { numberOfInputs: 0, outputChannelCount: [2] };
    const loudspeaker = new AudioWorkletNode(context, "loudspeaker", options);
    loudspeaker.connect(context.destination);
    return loudspeaker;
  }

  /** Tells the worker when it is on, and when it is off. */
  #tell(): void {
    const context = this.#isLoaded && this.#context?.state === "running" ? this.#context : undefined;
    const isOn = context !== undefined && this.#isWanted && !this.#button.hidden;
    if (isOn === this.#isOn) {
      return;
    }
    this.#isOn = isOn;
    press(this.#button, isOn);
    if (isOn) {
      const { port1, port2 } = new MessageChannel();
      this.#loudspeaker ??= this.#connect(context);
      this.#loudspeaker.port.postMessage(port2, [port2]);
      this.#order({ kind: "listen", port: port1 }, [port1]);
      this.measure();
    } else {
      this.#order({ kind: "listen", port: undefined }, []);
    }
  }
}
