import type { Line } from "../src/socket.js";
import type { Bytes } from "../src/viewer.js";

/** A WebSocket that keeps what it is given. */
export class FakeLine implements Line {
  binaryType = "blob";
  bufferedAmount = 0;
  onopen: Line["onopen"] = null;
  onmessage: Line["onmessage"] = null;
  onclose: Line["onclose"] = null;
  readonly sent: number[][] = [];
  closes = 0;

  send(bytes: Bytes): void {
    this.sent.push([...bytes]);
  }

  close(): void {
    this.closes += 1;
  }

  hear(...bytes: number[]): void {
    this.onmessage?.({ data: new Uint8Array(bytes).buffer });
  }
}
