// In a page from its beginning, and in each of its workers: what a canvas shows, and a clock that they have in common.

// Rows of pixels that are looked at: more than what is typed fills.
const ROWS = 128;
let copy;

const isScreen = (canvas) => canvas.width * canvas.height > 100000;

// What those rows show, a word for each pixel.
const words = (canvas) => {
    if (copy?.canvas.width !== canvas.width) {
        copy = new OffscreenCanvas(canvas.width, ROWS).getContext("2d", { willReadFrequently: true });
    }
    copy.clearRect(0, 0, canvas.width, ROWS);
    copy.drawImage(canvas, 0, 0);
    return new Uint32Array(copy.getImageData(0, 0, canvas.width, ROWS).data.buffer);
};

const sumOf = (words) => {
    let sum = 0;
    for (const word of words) {
        sum = (Math.imul(sum, 31) + word) | 0;
    }
    return sum;
};

// More than one colour, within the canvas.
const isPicture = (words) => words.some((word) => word !== words[0] && word !== 0);

// Milliseconds.
const now = () => performance.timeOrigin + performance.now();
