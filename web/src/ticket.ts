/**
 * What a link holds: a ticket, as `wayferry ticket` prints it.
 *
 * Knows no network. Invariant: a ticket that was read is whole, for its checksum fits.
 */

import type { Link } from "./talk.js";

/** What a ticket says. */
export interface Ticket {
  /** The session's id and the secret, as the viewer takes them: 16 and 32 bytes. */
  readonly secret: Uint8Array<ArrayBuffer>;
  /** SHA-256 of the certificate that the host shows. */
  readonly certificate: Uint8Array<ArrayBuffer>;
  /** Where the host is, the likeliest first: a host and a port, as addresses have them. */
  readonly places: readonly string[];
}

/** Reads what stands behind the `#` of the page's address: a ticket, and before it `control,` where it is to be one. */
export function readLink(fragment: string): Link {
  const control = fragment.startsWith(CONTROL);
  return { control, ticket: control ? fragment.slice(CONTROL.length) : fragment };
}

/**
 * Whether the page is for this ticket: any site can lead a browser here with one of its own. `wayferry share` says what
 * it has made, by digests in lines; another server has no such file, and all tickets are good. No other answer means
 * that: a site on another port of this host could cause one, as by cookies, which are not sent here.
 *
 * Fails where nothing answers, or something else.
 */
export async function isMeant(ticket: string): Promise<boolean> {
  const answer = await fetch("links", { credentials: "omit" });
  if (answer.status === 404) {
    return true;
  }
  if (!answer.ok) {
    throw new Error(`the page's server does not say: ${answer.status}`);
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(ticket)));
  const digits = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return (await answer.text()).split("\n").includes(digits);
}

/** Reads a ticket; nothing if it is none. */
export async function readTicket(text: string): Promise<Ticket | undefined> {
  const bytes = text.startsWith(MARK) ? decode(text.slice(MARK.length)) : undefined;
  if (bytes === undefined || bytes.length < HEAD + SUM) {
    return undefined;
  }
  const body = bytes.slice(0, -SUM);
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  if (!bytes.slice(-SUM).every((byte, at) => byte === sum[at])) {
    return undefined;
  }
  const places = readPlaces(body.slice(HEAD - 1));
  if (places === undefined) {
    return undefined;
  }
  const secret = new Uint8Array([...body.slice(0, 16), ...body.slice(48, 80)]);
  return { secret, certificate: body.slice(16, 48), places };
}

/** A number of addresses, each with its port. */
function readPlaces(bytes: Uint8Array): string[] | undefined {
  const places: string[] = [];
  let at = 1;
  for (let left = bytes[0] ?? 0; left > 0; left -= 1) {
    const length = bytes[at] === 4 ? 4 : bytes[at] === 6 ? 16 : undefined;
    if (length === undefined || at + 1 + length + 2 > bytes.length) {
      return undefined;
    }
    const address = bytes.slice(at + 1, at + 1 + length);
    const [high = 0, low = 0] = bytes.slice(at + 1 + length);
    places.push(`${length === 4 ? address.join(".") : `[${groups(address)}]`}:${high * 256 + low}`);
    at += 1 + length + 2;
  }
  return at === bytes.length ? places : undefined;
}

/** An address of IPv6 in eight groups. */
function groups(address: Uint8Array): string {
  const group = (at: number) => ((address[at] ?? 0) * 256 + (address[at + 1] ?? 0)).toString(16);
  return [0, 2, 4, 6, 8, 10, 12, 14].map(group).join(":");
}

function decode(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(plain, (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

const MARK = "wf1:";
const CONTROL = "control,";
/** Bytes up to the number of addresses, with that. */
const HEAD = 16 + 32 + 32 + 1;
/** Bytes of the checksum. */
const SUM = 4;
