/** What a page and its worker say to each other. */

import type { Rect } from "./viewer.js";

/** How far a viewer is. */
export type State =
  | "connecting"
  | "shown"
  /** No link of Wayferry's was opened. */
  | "no link"
  /** The browser has no WebTransport. */
  | "no transport"
  /** No host answered. */
  | "unreachable"
  | "refused"
  | "full"
  | "incompatible"
  | "done"
  | "lost"
  | "broken";

/** To the worker. */
export type Order =
  | { readonly kind: "begin"; readonly module: ArrayBuffer; readonly ticket: string }
  | { readonly kind: "canvas"; readonly key: string; readonly canvas: OffscreenCanvas }
  | { readonly kind: "leave" };

/** To the page. */
export type News =
  | { readonly kind: "state"; readonly state: State }
  /** A program is not shown any more. */
  | { readonly kind: "not shown"; readonly why: string }
  | { readonly kind: "window"; readonly key: string; readonly look: Look }
  | { readonly kind: "gone"; readonly key: string }
  | { readonly kind: "figures"; readonly rtt: number | undefined };

/** What a page needs to know of a window. */
export interface Look {
  readonly title: string;
  readonly app: string;
  /** In units. */
  readonly geometry: Rect;
  /** What is painted, in the same units. */
  readonly extent: Rect;
}
