//! Sums of products of whole rows: the work that takes the time.
//!
//! It knows nothing of repair or erasures: some source rows, a matrix, and the rows that come out. All kernels give equal
//! bytes.

mod scalar;

/// Makes `outputs[j]` = Σ over i of `coefficients[j · k + i]` · `sources[i]`, where k is how many sources there are.
///
/// All outputs have one length, and no source is shorter; what the outputs held is overwritten.
pub(crate) fn combine(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    combine_by(scalar::group, sources, coefficients, outputs);
}

fn combine_by(kernel: Kernel, sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    assert_eq!(coefficients.len(), sources.len() * outputs.len(), "a matrix of another size");
    if sources.is_empty() {
        outputs.iter_mut().for_each(|output| output.fill(0));
        return;
    }
    let is_sum = |row: &&[u8]| row.iter().all(|&coefficient| coefficient == 1);
    let sums = coefficients.chunks(sources.len()).take_while(is_sum).count();
    let (plain, others) = outputs.split_at_mut(sums);
    plain.iter_mut().for_each(|output| sum(sources, output));
    let rows = coefficients[sums * sources.len()..].chunks(GROUP * sources.len());
    for (rows, outputs) in rows.zip(others.chunks_mut(GROUP)) {
        kernel(sources, rows, outputs);
    }
}

/// The plain exclusive or of all sources. The compiler makes vectors of it without help.
fn sum(sources: &[&[u8]], output: &mut [u8]) {
    output.copy_from_slice(&sources[0][..output.len()]);
    for source in &sources[1..] {
        for (byte, &other) in output.iter_mut().zip(*source) {
            *byte ^= other;
        }
    }
}

/// Makes up to [`GROUP`] outputs at once, from arguments like those of [`combine`].
type Kernel = fn(&[&[u8]], &[u8], &mut [&mut [u8]]);

/// How many outputs are made in one pass over the sources: what fits a processor's vector registers.
const GROUP: usize = 4;
