/** What a page and its worker say to each other. */

import type { Size } from "./area.js";
import type { Rect } from "./viewer.js";

/** How far a viewer is. */
export type State =
  | "connecting"
  | "shown"
  /** The link is lost, and another one is looked for. */
  | "away"
  /** The page came from no place that browsers trust. */
  | "insecure"
  /** No link of Wayferry's was opened. */
  | "no link"
  /** The page came, and what else it needs did not. */
  | "unserved"
  /** The browser has no WebTransport, and no other way led to a host. */
  | "no transport"
  /** No host answered. */
  | "unreachable"
  | "refused"
  | "full"
  | "incompatible"
  | "done"
  /** Another display has the session. */
  | "taken"
  /** The link was taken back by which the page had come. */
  | "revoked"
  /** It came again too late: the session goes on without it. */
  | "forgotten"
  | "lost"
  | "broken";

/** To the worker. */
export type Order =
  | { readonly kind: "begin"; readonly module: ArrayBuffer; readonly link: Link }
  | { readonly kind: "canvas"; readonly key: string; readonly canvas: OffscreenCanvas }
  | { readonly kind: "input"; readonly input: Input }
  /** The loudspeaker behind this port plays the session's sound; or there is none. */
  | { readonly kind: "listen"; readonly port: MessagePort | undefined }
  /** Milliseconds until what it plays is heard. */
  | { readonly kind: "latency"; readonly latency: number }
  /** A link that is looked for may be there now. */
  | { readonly kind: "retry" }
  | { readonly kind: "leave" };

/** What the page's address says. */
export interface Link {
  /** The page is to be the session's display; whether it may, its host knows. */
  readonly control: boolean;
  readonly ticket: string;
}

/** What a user does, as the viewer takes it; windows are named by their keys, keys and buttons by evdev. */
export type Input =
  /** There is so much room for windows. */
  | { readonly kind: "area"; readonly size: Size }
  | { readonly kind: "focus"; readonly key: string }
  /** The program is asked to close its window. */
  | { readonly kind: "close"; readonly key: string }
  /** In units from the corner of the window's geometry. */
  | { readonly kind: "move"; readonly key: string; readonly x: number; readonly y: number }
  | { readonly kind: "leave" }
  | { readonly kind: "button"; readonly code: number; readonly pressed: boolean }
  /** In units of Wayland's axes, and in 120ths of a wheel's steps; fingers have none, and end with nothing at all. */
  | {
      readonly kind: "wheel";
      readonly dx: number;
      readonly dy: number;
      readonly stepsX: number;
      readonly stepsY: number;
    }
  | {
      readonly kind: "key";
      readonly code: number;
      /** 1 with Shift, 2 with AltGr, 3 with both. */
      readonly level: number;
      /** The character of that level, or nothing. */
      readonly text: string;
      readonly pressed: boolean;
    }
  /** What is on from now on: Shift 1, Caps Lock 2, Control 4, Alt 8, Num Lock 16, Super 64, AltGr 128. */
  | { readonly kind: "modifiers"; readonly bits: number }
  /** The browser's keyboard has these characters: one for each key, behind one whose number is the key's. */
  | { readonly kind: "layout"; readonly pairs: string }
  /** Text that no key was told for. */
  | { readonly kind: "type"; readonly text: string }
  /** Programs may paste it. It is not new if the browser was known to have it. */
  | { readonly kind: "offer"; readonly clip: Clip; readonly isNew: boolean }
  /** Everything that is down goes up. */
  | { readonly kind: "blur" };

/** What a clipboard has. */
export type Clip =
  | { readonly kind: "text"; readonly text: string }
  /** As PNG. */
  | { readonly kind: "picture"; readonly picture: Blob };

/** To the page. */
export type News =
  | { readonly kind: "state"; readonly state: State }
  /** The session has sound that may be heard. */
  | { readonly kind: "sound" }
  /** A program is not shown any more. */
  | { readonly kind: "not shown"; readonly why: string }
  | { readonly kind: "window"; readonly key: string; readonly look: Look }
  | { readonly kind: "gone"; readonly key: string }
  | { readonly kind: "cursor"; readonly cursor: Cursor }
  /** A program has copied it. */
  | { readonly kind: "copied"; readonly clip: Clip }
  /** Keys are passed over until there is a link. */
  | { readonly kind: "missed" }
  /** The last motion of the pointer was taken. */
  | { readonly kind: "taken" }
  | {
      readonly kind: "figures";
      readonly carrier: CarrierName;
      readonly rtt: number | undefined;
      readonly lost: number | undefined;
    };

/** What a session is on, as a user may know it. */
export type CarrierName = "WebTransport" | "WebSocket";

/** What a page needs to know of a window. */
export interface Look {
  /** The key of the window that this one is a dialog of. */
  readonly parent: string | undefined;
  readonly title: string;
  readonly app: string;
  /** In units. */
  readonly geometry: Rect;
  /** What is painted, in the same units. */
  readonly extent: Rect;
}

/** What the pointer looks like. */
export type Cursor =
  | { readonly kind: "default" }
  | { readonly kind: "hidden" }
  /** As CSS has it. */
  | { readonly kind: "name"; readonly name: string }
  /** With its hotspot in units, and so many pixels to each of them. */
  | {
      readonly kind: "image";
      /** A `data:` address. */
      readonly address: string;
      readonly x: number;
      readonly y: number;
      readonly scale: number;
    };
