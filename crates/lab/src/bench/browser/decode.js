// In Wayferry's page: plays what a session with a page that views has received in a viewer of its own, of the page's
// module. `decode(list)` takes the arrivals of the next picture, gives the milliseconds and the sum of its pixels.
globalThis.viewer = fetch("viewer.wasm").then((answer) => answer.arrayBuffer()).then(async (module) => {
    const { exports } = (await WebAssembly.instantiate(module, {})).instance;
    const ticket = new Uint8Array(80).fill(1, 0, 16).fill(7, 16);
    const put = (bytes) => {
        // Its memory may move when it makes place.
        const place = exports.input(bytes.length);
        new Uint8Array(exports.memory.buffer, place, bytes.length).set(bytes);
    };
    put(ticket);
    exports.begin(0, 0);
    return { exports, put };
});

globalThis.decode = async (list) => {
    const { exports, put } = await viewer;
    const bytesOf = (digits) => {
        const bytes = new Uint8Array(digits.length / 2);
        for (let at = 0; at < bytes.length; at += 1) {
            bytes[at] = Number.parseInt(digits.substr(at * 2, 2), 16);
        }
        return bytes;
    };
    const arrivals = list.map(([stream, at, digits]) => [stream, at, digits === undefined ? digits : bytesOf(digits)]);
    const start = performance.now();
    for (const [stream, at, bytes] of arrivals) {
        if (bytes === undefined) {
            exports.stream_finished(0, stream, at);
        } else {
            put(bytes);
            exports.stream_data(0, stream, at);
        }
        while (exports.poll_transmit(0) !== 0) {}
    }
    exports.pixels(1, 8, 0, 0, 0, 1920, 1080);
    const [place, length] = [exports.out(), exports.out_length()];
    const pixels = new Uint8Array(exports.memory.buffer, place, length).slice();
    const time = performance.now() - start;
    exports.on_frame(0, 0);
    let sum = 0;
    for (const word of new Uint32Array(pixels.buffer)) {
        sum = (Math.imul(sum, 31) + word) >>> 0;
    }
    return { time, sum };
};
