//! A buffer that was committed comes back once, in any order of events.

use super::*;

/// What a program or a reader may do in [`every_buffer_comes_back_once`].
#[derive(Debug, Clone)]
enum Step {
    Show { surface: usize, buffer: usize },
    Commit(usize),
    Destroy(usize),
    Hide { surface: usize, visible: bool },
    Answer,
    Fail,
    Pass(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, 0..5usize).prop_map(|(surface, buffer)| Step::Show { surface, buffer }),
        1 => (0..3usize).prop_map(Step::Commit),
        1 => (0..5usize).prop_map(Step::Destroy),
        1 => (0..3usize, any::<bool>()).prop_map(|(surface, visible)| Step::Hide { surface, visible }),
        3 => Just(Step::Answer),
        1 => Just(Step::Fail),
        2 => (1..30u8).prop_map(Step::Pass),
    ]
}

proptest! {
    /// A program does anything with buffers that are free, and the reader anything in the meantime: a buffer that was
    /// committed comes back exactly once, unless it was destroyed; and at rest what is shown is what was drawn last, or
    /// what was there before if that could not be read.
    #[test]
    fn every_buffer_comes_back_once(steps in proptest::collection::vec(step(), 1..60)) {
        let mut gpu = Gpu::new();
        // A window, a synchronised subsurface of it, and a surface alone.
        let parent = gpu.window(1);
        let (child, _) = gpu.child_of(parent);
        let surfaces = [parent, child, gpu.window(1)];
        let mut buffers: Vec<Option<u32>> = (0..5).map(|value| Some(gpu.buffer(100 + value))).collect();
        let mut busy: BTreeMap<u32, i32> = BTreeMap::new();
        let note = |gpu: &mut Gpu, busy: &mut BTreeMap<u32, i32>| {
            for buffer in gpu.rig.released() {
                *busy.entry(buffer).or_default() -= 1;
            }
        };
        note(&mut gpu, &mut busy);
        busy.clear();
        let mut drawn = BTreeMap::from([(surfaces[0], 1), (surfaces[2], 1)]);
        let mut failed = false;
        for step in steps {
            match step {
                Step::Show { surface, buffer } => {
                    let Some(id) = buffers[buffer] else { continue };
                    if busy.get(&id).is_some_and(|count| *count > 0) {
                        continue;
                    }
                    *busy.entry(id).or_default() += 1;
                    drawn.insert(surfaces[surface], 100 + buffer as u8);
                    gpu.rig.attach(surfaces[surface], id);
                    gpu.rig.commit(surfaces[surface]);
                }
                Step::Commit(surface) => gpu.rig.commit(surfaces[surface]),
                Step::Destroy(buffer) => {
                    if let Some(id) = buffers[buffer].take() {
                        gpu.rig.request(id, "destroy", vec![]);
                        busy.remove(&id);
                    }
                }
                Step::Hide { surface, visible } => {
                    let surface = gpu.rig.connection.surfaces[&surfaces[surface]].wire;
                    gpu.rig.tell(&ToApp::Visible { surface, visible });
                }
                Step::Answer | Step::Fail => {
                    gpu.ask();
                    let is_read = matches!(gpu.reader.waiting().next(), Some(Ask::Read { .. }));
                    let fails = matches!(step, Step::Fail) && is_read;
                    failed |= fails;
                    let answer = if fails { gpu.reader.refuse() } else { gpu.reader.answer() };
                    if let Some(answer) = answer {
                        gpu.rig.connection.on_answer(gpu.rig.now, answer);
                        gpu.rig.collect();
                    }
                }
                Step::Pass(millis) => gpu.rig.pass(Duration::from_millis(millis.into())),
            }
            gpu.rig.units();
            note(&mut gpu, &mut busy);
            prop_assert!(busy.values().all(|count| *count >= 0), "released twice: {busy:?}");
        }
        for surface in surfaces {
            let surface = gpu.rig.connection.surfaces[&surface].wire;
            gpu.rig.tell(&ToApp::Visible { surface, visible: true });
        }
        for _ in 0..3 {
            gpu.rig.commit(surfaces[1]);
            gpu.rig.commit(surfaces[0]);
            gpu.settle();
            gpu.rig.units();
            note(&mut gpu, &mut busy);
        }
        prop_assert!(busy.values().all(|count| *count == 0), "kept: {busy:?}");
        prop_assert_eq!(gpu.rig.connection.end(), None);
        for (surface, value) in drawn {
            prop_assert!(failed || gpu.rig.content(surface) == [value; BYTES]);
        }
        gpu.ask();
        let alive = buffers.iter().flatten().count();
        // Those of the two windows were never destroyed.
        prop_assert_eq!(gpu.reader.images(), alive + 2);
    }
}
