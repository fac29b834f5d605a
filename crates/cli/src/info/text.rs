//! A side's document as a paragraph for a reader.
//!
//! The document may come from another version of this program: a field that is missing or of another type is unknown.
//! Invariant: no text of a document reaches the terminal with control characters in it.

use serde_json::Value;

use wayferry_host::sanitize::sanitize;

/// The paragraph, with its last line feed.
pub(crate) fn paragraph(document: &Value) -> String {
    let of = Document(document);
    format!(
        "{} side, process {}, session {}{}, {} over {}\n\
         \x20 link     round trip {} ({} without a queue, {} in it now), rate {}, window {}\n\
         \x20 traffic  {} sent, {} received, programs: {}\n\
         \x20 loss     {} of {} packets sent ({}), {} in a row\n\
         \x20 repair   {} rows of {} sent for {} blocks ({} of all bytes sent)\n\
         \x20 rebuilt  {} blocks, {}, which saved about {} of waiting\n\
         {}{}{}{}{}{}",
        of.text("role"),
        of.count("pid"),
        of.text("session"),
        of.called(),
        of.peer(),
        of.text("carrier"),
        of.time("rtt_ms"),
        of.time("base_rtt_ms"),
        of.time("queue_delay_ms"),
        of.rate("rate_bits_per_second"),
        of.size("window_bytes"),
        of.size("sent_bytes"),
        of.size("received_bytes"),
        of.count("programs"),
        of.count("lost_packets"),
        of.count("sent_packets"),
        of.percent("lost_percent"),
        of.number("mean_burst_packets", |burst| format!("{burst:.1}")),
        of.count("repair_rows"),
        of.size("repair_bytes"),
        of.count("protected_blocks"),
        of.percent("repair_percent"),
        of.count("rebuilt_blocks"),
        of.size("rebuilt_bytes"),
        of.time("saved_ms_estimate"),
        of.pictures(),
        of.sound(),
        of.microphone(),
        of.gpu(),
        of.encoder(),
        of.predicted(),
    )
}

/// Whether somebody shows a session, and how many view it.
pub(crate) fn attention(document: &Value) -> Option<String> {
    let state = document["state"].as_str().map(sanitize)?;
    let by = if state == "detached" { String::new() } else { by_link(document, "peer_software") };
    let state = format!("{state}{by}");
    Some(match document["views"].as_u64() {
        None | Some(0) => state,
        Some(1) => format!("{state}, 1 view"),
        Some(views) => format!("{state}, {views} views"),
    })
}

/// By which link somebody came, if by one, and what it says that it is in this field.
pub(crate) fn by_link(document: &Value, software: &str) -> String {
    let Some(id) = document["link"].as_u64() else { return String::new() };
    let software = document[software].as_str().map(|software| format!(" ({})", sanitize(software)));
    format!(" by link {id}{}", software.unwrap_or_default())
}

/// Surfaces that are named one by one.
const MAX_NAMED: usize = 5;

/// Reads fields as words; `?` for those that are unknown.
pub(crate) struct Document<'a>(pub(crate) &'a Value);

impl Document<'_> {
    fn text(&self, field: &str) -> String {
        self.0[field].as_str().map_or_else(unknown, sanitize)
    }

    /// Name and state of a session, where this side knows them.
    fn called(&self) -> String {
        match (self.0["name"].as_str().map(sanitize), attention(self.0)) {
            (Some(name), Some(state)) => format!(" (`{name}`, {state})"),
            _ => String::new(),
        }
    }

    fn peer(&self) -> String {
        self.0["peer_software"]
            .as_str()
            .map_or_else(|| "no peer yet".into(), |peer| format!("with {}", sanitize(peer)))
    }

    /// How exact what the display shows is; nothing from a side that does not know.
    fn pictures(&self) -> String {
        let Some(all) = self.0["surfaces"].as_array() else { return String::new() };
        let figure = |surface: &Value, field: &str| surface[field].as_u64().unwrap_or_default();
        let lossy: Vec<&Value> = all.iter().filter(|it| figure(it, "lossy_pixels") > 0).collect();
        let (known, inexact) = (figure(self.0, "surfaces_known"), figure(self.0, "surfaces_lossy"));
        let mut text = format!("  pictures {} of {known} surfaces exact", known.saturating_sub(inexact));
        for surface in lossy.iter().take(MAX_NAMED) {
            let (width, height) = (figure(surface, "width"), figure(surface, "height"));
            let share = figure(surface, "lossy_pixels") as f64 / (width as f64 * height as f64).max(1.0);
            let (program, id) = (figure(surface, "program"), figure(surface, "surface"));
            text += &format!(
                "; surface {id} of program {program} ({width}x{height}) {:.1} % lossy for now{}",
                100.0 * share,
                if figure(surface, "videos") > 0 { ", a video" } else { "" }
            );
        }
        text + "\n"
    }

    /// How sound fares; nothing from a side without.
    fn sound(&self) -> String {
        let sound = Document(&self.0["sound"]);
        if !sound.0.is_object() {
            return String::new();
        }
        let codec = match (sound.0["codec"].as_str().map(sanitize), sound.0["rate_bits_per_second"].as_f64())
        {
            (None, _) => return "  sound    is not listened to\n".into(),
            (Some(codec), None) => codec,
            (Some(codec), Some(rate)) => format!("{codec} at {:.0} kbit/s", rate / 1e3),
        };
        if sound.0["device"].is_null() {
            let (frames, delay) = (sound.count("frames"), sound.time("delay_ms"));
            return format!("  sound    {codec}, {frames} frames sent, heard {delay} after they arrive\n");
        }
        let seconds = |field| sound.number(field, |seconds| format!("{seconds:.2} s"));
        format!(
            "  sound    {codec}, device {}: {} behind ({} against jitter), {} of {} made up, tempo {}, drift {}\n",
            sound.text("device"),
            sound.time("latency_ms"),
            sound.time("target_ms"),
            seconds("concealed_seconds"),
            seconds("played_seconds"),
            sound.number("tempo", |tempo| format!("{tempo:.3}")),
            sound.number("drift_ppm", |drift| format!("{drift:.0} ppm")),
        )
    }

    /// Whether the microphone is open; nothing from a side that has none to tell of.
    fn microphone(&self) -> String {
        let microphone = Document(&self.0["microphone"]);
        let told = |text: &str| format!("  mic      {text}\n");
        match (microphone.0["open"].as_bool(), microphone.0["recorded"].as_bool()) {
            (Some(true), _) => told(&format!("open, {} frames sent", microphone.count("frames"))),
            (Some(false), _) => told("closed; programs may open it"),
            (None, Some(true)) => told(&format!("recorded, {} behind", microphone.time("latency_ms"))),
            _ => String::new(),
        }
    }

    /// What reads GPU buffers; nothing from a side that has none to tell of.
    fn gpu(&self) -> String {
        let gpu = Document(&self.0["gpu"]);
        if !gpu.0.is_object() {
            return String::new();
        }
        let told = |text: &str| format!("  gpu      {text}\n");
        match (gpu.0["reader"].as_str().map(sanitize), gpu.0["unable"].as_str().map(sanitize)) {
            (Some(reader), _) => told(&format!("{reader}: {}", gpu.readings())) + &gpu.gpu_surfaces(),
            (None, Some(why)) => told(&format!("programs draw in software: {why}")),
            (None, None) => told(&format!("no reader just now; {} were started", gpu.count("readers"))),
        }
    }

    /// What makes videos, if it is not what always does.
    fn encoder(&self) -> String {
        let encoder = &self.0["encoder"];
        match encoder["name"].as_str().map(sanitize) {
            Some(name) if encoder["tried"] == false => {
                format!("  video    made by {name}, with which Wayferry has not been tried yet\n")
            }
            Some(name) if name != "openh264" => format!("  video    made by {name}\n"),
            _ => String::new(),
        }
    }

    /// What came of keys that were shown before their answers; nothing where there were none.
    fn predicted(&self) -> String {
        let windows = self.0["predicted"].as_array().map(Vec::as_slice).unwrap_or_default();
        let sum = |field: &str| {
            windows.iter().filter_map(|it| it[field].as_u64()).fold(0, u64::saturating_add).to_string()
        };
        if windows.is_empty() {
            return String::new();
        }
        let (shown, right, wrong, held) = (sum("shown"), sum("right"), sum("wrong"), sum("held"));
        format!("  typing   {shown} keys shown at once ({right} right, {wrong} wrong), {held} not\n")
    }

    fn readings(&self) -> String {
        let (count, bytes) = (self.count("read"), self.size("read_bytes"));
        format!("{count} readings of {bytes}, {} each", self.time("read_ms_mean"))
    }

    /// The first surfaces whose content comes from GPU buffers, and what they wait for if they have for long.
    fn gpu_surfaces(&self) -> String {
        let surfaces = self.0["surfaces"].as_array().map(Vec::as_slice).unwrap_or_default();
        let line = |surface: &Value| {
            let of = Document(surface);
            let path = surface["path"].as_str().map_or_else(unknown, sanitize);
            let (number, program) = (of.count("surface"), of.count("program"));
            let waits = match surface["waits_ms"].as_f64().filter(|waits| *waits >= LONG_WAIT_MS) {
                None => String::new(),
                Some(_) if surface["waits_for"] == "program" => {
                    format!("; for {} it has not finished drawing", of.time("waits_ms"))
                }
                Some(_) => format!("; for {} the reader has not answered", of.time("waits_ms")),
            };
            format!("           surface {number} of program {program}: {path}, {}{waits}\n", of.readings())
        };
        surfaces.iter().take(MAX_GPU_SURFACES).map(line).collect()
    }

    fn number(&self, field: &str, word: impl FnOnce(f64) -> String) -> String {
        self.0[field].as_f64().map_or_else(unknown, word)
    }

    fn count(&self, field: &str) -> String {
        self.0[field].as_u64().map_or_else(unknown, |count| count.to_string())
    }

    pub(crate) fn percent(&self, field: &str) -> String {
        self.number(field, |percent| format!("{percent:.1} %"))
    }

    pub(crate) fn time(&self, field: &str) -> String {
        self.number(field, |time| {
            if time < 10_000.0 { format!("{time:.1} ms") } else { format!("{:.1} s", time / 1e3) }
        })
    }

    fn rate(&self, field: &str) -> String {
        self.number(field, |rate| format!("{:.2} Mbit/s", rate / 1e6))
    }

    fn size(&self, field: &str) -> String {
        self.number(field, size)
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.1} GB", bytes / 1e9),
    }
}

/// What waits for less long waits as all do.
const LONG_WAIT_MS: f64 = 5000.0;
/// Surfaces that are told of in words.
const MAX_GPU_SURFACES: usize = 8;

fn unknown() -> String {
    "?".into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a side tells; the library's tests hold these.
    const SAMPLE: &str = include_str!("../../../host/src/info/sample.json");
    const UNMEASURED: &str = include_str!("../../../host/src/info/unmeasured.json");

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("a document")
    }

    #[test]
    fn a_side_in_words() {
        let expected = "app side, process 7, session a0a1a2a3, with wayferry 0.1.0 over quic\n  \
             link     round trip 103.1 ms (100.0 ms without a queue, 3.1 ms in it now), rate 19.60 Mbit/s, window 250.0 kB\n  \
             traffic  1.2 MB sent, 80.0 kB received, programs: 2\n  \
             loss     12 of 1100 packets sent (1.2 %), 1.2 in a row\n  \
             repair   40 rows of 48.0 kB sent for 30 blocks (4.0 % of all bytes sent)\n  \
             rebuilt  3 blocks, 3.4 kB, which saved about 309.0 ms of waiting\n  \
             pictures 2 of 3 surfaces exact; surface 5 of program 1 (640x480) 3.0 % lossy for now, a video\n  \
             sound    opus at 96 kbit/s, 700 frames sent, heard 91.0 ms after they arrive\n\
             \x20 mic      recorded, 51.0 ms behind\n\
             \x20 gpu      egl: Mesa: 300 readings of 9.0 MB, 1.2 ms each\n\
             \x20          surface 5 of program 1: egl, 300 readings of 9.0 MB, 1.2 ms each; \
             for 7012.5 ms it has not finished drawing\n\
             \x20 video    made by h264_vaapi, with which Wayferry has not been tried yet\n";
        assert_eq!(paragraph(&read(SAMPLE)), expected);
    }

    #[test]
    fn the_microphone_in_words() {
        let of = |microphone: Value| Document(&json!({ "microphone": microphone })).microphone();
        assert_eq!(of(Value::Null), "");
        assert_eq!(of(json!({ "recorded": false })), "");
        assert_eq!(
            of(json!({ "recorded": true, "latency_ms": 51 })),
            "  mic      recorded, 51.0 ms behind\n"
        );
        assert_eq!(of(json!({ "open": true, "frames": 7 })), "  mic      open, 7 frames sent\n");
        assert_eq!(of(json!({ "open": false })), "  mic      closed; programs may open it\n");
    }

    #[test]
    fn keys_that_were_predicted_in_words() {
        let of = |predicted: Value| Document(&json!({ "predicted": predicted })).predicted();
        assert_eq!((of(Value::Null), of(json!([]))), (String::new(), String::new()));
        let window = |shown: u64| json!({ "shown": shown, "right": 9, "wrong": 1, "held": 5 });
        let told = "  typing   30 keys shown at once (18 right, 2 wrong), 10 not\n";
        assert_eq!(of(json!([window(10), window(20)])), told);
    }

    #[test]
    fn what_reads_gpu_buffers_in_words() {
        let of = |gpu: Value| Document(&json!({ "gpu": gpu })).gpu();
        assert_eq!(of(Value::Null), "");
        let unable = json!({ "reader": null, "unable": "no render node", "readers": 1 });
        assert_eq!(of(unable), "  gpu      programs draw in software: no render node\n");
        let ended = json!({ "reader": null, "unable": null, "readers": 4 });
        assert_eq!(of(ended), "  gpu      no reader just now; 4 were started\n");
    }

    #[test]
    fn sound_in_words() {
        let of = |sound: Value| Document(&json!({ "sound": sound })).sound();
        assert_eq!((of(json!(null)), of(json!("loud"))), (String::new(), String::new()));
        assert_eq!(of(json!({ "codec": null, "mode": "hybrid" })), "  sound    is not listened to\n");
        let played = json!({
            "codec": "pcm", "rate_bits_per_second": null, "device": "playing", "target_ms": 80, "latency_ms": 88,
            "played_seconds": 12.5, "concealed_seconds": 0.01, "tempo": 1.0, "drift_ppm": null,
        });
        assert_eq!(
            of(played),
            "  sound    pcm, device playing: 88.0 ms behind (80.0 ms against jitter), 0.01 s of 12.50 s made up, \
             tempo 1.000, drift ?\n"
        );
        assert!(!of(json!({ "codec": "\u{1b}", "device": "\u{1b}[2J" })).contains('\u{1b}'));
    }

    #[test]
    fn what_is_not_known_is_a_question_mark() {
        let text = paragraph(&read(UNMEASURED));
        assert!(text.contains("no peer yet over byte-stream") && text.contains("round trip ? (?"), "{text}");
        assert!(!text.contains("null") && text.contains("window 65.5 kB"), "{text}");
    }

    #[test]
    fn a_strange_document_does_no_harm() {
        for document in [json!([]), json!("x"), json!({ "role": 1, "pid": "x", "rtt_ms": [] })] {
            assert!(paragraph(&document).starts_with("? side, process ?"), "{document}");
        }
        let hostile = json!({ "role": "\u{1b}[2J", "session": "a\nb", "peer_software": "\u{202e}" });
        let text = paragraph(&hostile);
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.lines().count() == 6, "{text:?}");
    }

    #[test]
    fn sizes() {
        let all = [(999, "999 B"), (1_500, "1.5 kB"), (2_000_000, "2.0 MB"), (3_100_000_000_u64, "3.1 GB")];
        for (bytes, word) in all {
            assert_eq!(size(bytes as f64), word);
        }
    }
}
