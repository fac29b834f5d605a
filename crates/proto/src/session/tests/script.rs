//! How a script in a browser is told of streams: each in order, and numbered as the first bytes of each came.

use super::*;

/// See the module.
#[derive(Default)]
pub(super) struct Script {
    /// The streams of which something has come, as their sender counts them.
    seen: Vec<StreamId>,
    flows: BTreeMap<StreamId, Flow>,
}

#[derive(Default)]
struct Flow {
    waiting: BTreeMap<u64, Bytes>,
    given: u64,
    length: Option<u64>,
    is_over: bool,
}

impl Script {
    /// What the session is told of an arrival.
    pub(super) fn hear(&mut self, arrival: Arrival) -> Vec<Arrival> {
        let stream = match arrival {
            Arrival::Data { stream, .. }
            | Arrival::Finished { stream, .. }
            | Arrival::Reset { stream, .. } => stream,
            other => return vec![other],
        };
        let flow = self.flows.entry(stream).or_default();
        if flow.is_over {
            return vec![];
        }
        match arrival {
            Arrival::Data { offset, bytes, .. } => {
                flow.waiting.insert(offset, bytes);
            }
            Arrival::Finished { length, .. } => flow.length = Some(length),
            // Of a stream of which nothing has come it hears nothing.
            Arrival::Reset { code, .. } => {
                flow.is_over = true;
                let number = self.seen.iter().position(|seen| *seen == stream);
                let reset = number.map(|number| Arrival::Reset { stream: StreamId(number as u64), code });
                return reset.into_iter().collect();
            }
            _ => {}
        }
        self.read(stream)
    }

    fn read(&mut self, stream: StreamId) -> Vec<Arrival> {
        let Some(flow) = self.flows.get_mut(&stream) else { return vec![] };
        let mut told = Vec::new();
        let is_next = |(at, bytes): (&u64, &Bytes), given| *at <= given && at + bytes.len() as u64 > given;
        while let Some(entry) = flow.waiting.iter().find(|entry| is_next(*entry, flow.given)) {
            let (at, bytes) = (*entry.0, entry.1.clone());
            let bytes = bytes.slice((flow.given - at) as usize..);
            told.push((flow.given, bytes.clone()));
            flow.given += bytes.len() as u64;
        }
        let known = self.seen.iter().position(|seen| *seen == stream);
        if known.is_none() && told.is_empty() {
            return vec![];
        }
        let number = StreamId(known.unwrap_or(self.seen.len()) as u64);
        if known.is_none() {
            self.seen.push(stream);
        }
        let data = |(offset, bytes)| Arrival::Data { stream: number, offset, bytes };
        let mut told: Vec<_> = told.into_iter().map(data).collect();
        if flow.length == Some(flow.given) {
            flow.is_over = true;
            told.push(Arrival::Finished { stream: number, length: flow.given });
        }
        told
    }

    /// The stream that it calls so is not wanted any more: as whom its sender knows it.
    pub(super) fn stop(&mut self, number: StreamId) -> StreamId {
        let stream = self.seen[number.0 as usize];
        self.flows.entry(stream).or_default().is_over = true;
        stream
    }
}
