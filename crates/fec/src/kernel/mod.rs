//! Sums of products of whole rows: the work that takes the time.
//!
//! It knows nothing of repair or erasures: some source rows, a matrix, and the rows that come out. All kernels give
//! equal bytes.

mod scalar;
mod vector;

/// Makes `outputs[j]` = Σ over i of `coefficients[j · k + i]` · `sources[i]`, where k is how many sources there are.
///
/// All outputs have one length, and no source is shorter; what the outputs held is overwritten.
pub(crate) fn combine(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    let fastest = vector::CANDIDATES.iter().find(|candidate| (candidate.is_here)());
    let kernel = fastest.map_or(scalar::group as Kernel, |candidate| candidate.run);
    combine_by(kernel, sources, coefficients, outputs);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::field;

    proptest! {
        #[test]
        fn all_kernels_give_the_bytes_of_plain_arithmetic(
            bytes in prop::collection::vec(any::<u8>(), 400),
            length in 1usize..300,
            matrix in prop::collection::vec(prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(1)], 1..9), 1..8),
        ) {
            let count = matrix[0].len();
            let sources: Vec<&[u8]> = (0..count).map(|index| &bytes[11 * index..][..length]).collect();
            let coefficients: Vec<u8> = matrix.iter().flat_map(|row| row.iter().cycle().take(count).copied()).collect();
            let expected: Vec<Vec<u8>> = coefficients.chunks(count).map(|row| sum_of_products(&sources, row)).collect();
            let here = vector::CANDIDATES.iter().filter(|candidate| (candidate.is_here)());
            for (name, kernel) in here.map(|one| (one.name, one.run)).chain([("scalar", scalar::group as Kernel)]) {
                let mut outputs = vec![vec![0xA5; length]; matrix.len()];
                let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(|row| &mut row[..]).collect();
                combine_by(kernel, &sources, &coefficients, &mut slices);
                prop_assert_eq!(&outputs, &expected, "{}", name);
            }
        }
    }

    fn sum_of_products(sources: &[&[u8]], row: &[u8]) -> Vec<u8> {
        let at = |at: usize| {
            let products =
                sources.iter().zip(row).map(|(source, &factor)| field::multiply(source[at], factor));
            products.fold(0, |sum, product| sum ^ product)
        };
        (0..sources[0].len()).map(at).collect()
    }
}
