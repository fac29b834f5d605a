//! Arithmetic in GF(2⁸) modulo x⁸ + x⁴ + x³ + x + 1, the entries of the code's matrix, and its inverse.
//!
//! All tables are computed by the compiler. Nothing here touches a row of bytes; that is the kernels' work.

/// x⁸ + x⁴ + x³ + x + 1.
pub(crate) const POLYNOMIAL: u16 = 0x11B;

/// The entry of the matrix for repair row `row` and source row `column`; `row + column` is at most 254.
pub(crate) fn coefficient(row: u8, column: usize) -> u8 {
    let y = point(column);
    power_of(log(y) + ORDER - log(y ^ row))
}

/// One by an element that is not 0.
pub(crate) fn reciprocal(element: u8) -> u8 {
    power_of(ORDER - log(element))
}

/// The inverse of the square submatrix of these repair rows and source rows (`erased`): entry (i, j) at `i · m + j`
/// turns the syndrome of `repair[j]` into its share of source row `erased[i]`.
///
/// In closed form, by Cauchy: with x and y as in the crate's documentation, and the scaling of column i by y_i undone,
/// entry (i, j) is P_j · Q_i / ((x_j + y_i) · y_i), where P_j = Π_n (x_j + y_n) / Π_{n ≠ j} (x_j + x_n) and
/// Q_i = Π_n (x_n + y_i) / Π_{n ≠ i} (y_n + y_i).
pub(crate) fn inverse(repair: &[u8], erased: &[usize]) -> Vec<u8> {
    let points: Vec<u8> = erased.iter().map(|&row| point(row)).collect();
    let p: Vec<u32> = repair.iter().map(|&x| quotient(x, &points, repair)).collect();
    let mut entries = Vec::with_capacity(repair.len() * erased.len());
    for &y in &points {
        let q = quotient(y, repair, &points) + ORDER - log(y);
        entries.extend(repair.iter().zip(&p).map(|(&x, &p)| power_of(p + q + ORDER - log(x ^ y))));
    }
    entries
}

/// The logarithm of Π (at + over) / Π (at + under), leaving out `at` itself; less than [`ORDER`].
fn quotient(at: u8, over: &[u8], under: &[u8]) -> u32 {
    let over: u32 = over.iter().map(|&other| log(at ^ other)).sum();
    let under: u32 = under.iter().filter(|&&other| other != at).map(|&other| ORDER - log(at ^ other)).sum();
    (over + under) % ORDER
}

/// y_i of source row i.
fn point(row: usize) -> u8 {
    u8::MAX - row as u8
}

/// The logarithm of an element that is not 0, less than [`ORDER`].
fn log(element: u8) -> u32 {
    u32::from(LOG[usize::from(element)])
}

/// The element with this logarithm.
fn power_of(exponent: u32) -> u8 {
    POWER[(exponent % ORDER) as usize]
}

/// The product of two elements.
pub(crate) fn product(a: u8, b: u8) -> u8 {
    let products = &NIBBLES[usize::from(a)];
    products[usize::from(b & 15)] ^ products[16 + usize::from(b >> 4)]
}

/// The product of two elements, the long way, for tables: shift, add, reduce.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    let mut product = 0;
    let mut shifted = a as u16;
    let mut bit = 0;
    while bit < 8 {
        if b >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted <<= 1;
        if shifted & 0x100 != 0 {
            shifted ^= POLYNOMIAL;
        }
        bit += 1;
    }
    product as u8
}

/// For every factor, its products with the 16 low halves of a byte, then those with the 16 high halves.
pub(crate) static NIBBLES: [[u8; 32]; 256] = {
    let mut table = [[0; 32]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut half = 0;
        while half < 16 {
            table[factor][half] = multiply(factor as u8, half as u8);
            table[factor][16 + half] = multiply(factor as u8, (half as u8) << 4);
            half += 1;
        }
        factor += 1;
    }
    table
};

/// How many elements have a logarithm.
const ORDER: u32 = 255;

/// x + 1, whose powers are all elements but 0; x alone does not do in this field.
const GENERATOR: u8 = 3;

static POWER: [u8; 255] = {
    let mut table = [1; 255];
    let mut exponent = 1;
    while exponent < 255 {
        table[exponent] = multiply(table[exponent - 1], GENERATOR);
        exponent += 1;
    }
    table
};

static LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[POWER[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    // FIPS 197 §4.2 multiplies in the same field.
    #[test]
    fn products_of_the_standard() {
        assert_eq!(multiply(0x57, 0x83), 0xC1);
        assert_eq!(multiply(0x57, 0x13), 0xFE);
    }

    #[test]
    fn logarithms_agree_with_products() {
        for a in 1..=255u8 {
            for b in 1..=255u8 {
                assert_eq!(power_of(log(a) + log(b)), multiply(a, b));
                assert_eq!(product(a, b), multiply(a, b));
            }
            assert_eq!(NIBBLES[usize::from(a)][16 + 5] ^ NIBBLES[usize::from(a)][3], multiply(a, 0x53));
        }
    }

    #[test]
    fn row_0_is_all_ones() {
        assert!((0..254).all(|column| coefficient(0, column) == 1));
    }

    #[test]
    fn entries_solve_their_definition() {
        for row in 0..=254u8 {
            for column in 0..usize::from(255 - row).min(254) {
                let y = 255 - column as u8;
                assert_eq!(multiply(coefficient(row, column), y ^ row), y);
            }
        }
    }

    #[test]
    fn inverse_times_matrix_is_one() {
        let cases: [(&[u8], &[usize]); 4] =
            [(&[0], &[9]), (&[3], &[0]), (&[0, 1, 2, 3], &[0, 1, 70, 250]), (&[1, 5, 100], &[2, 3, 150])];
        for (repair, erased) in cases {
            let inverse = inverse(repair, erased);
            for i in 0..erased.len() {
                for (other, &column) in erased.iter().enumerate() {
                    let products = (0..repair.len())
                        .map(|j| multiply(inverse[i * repair.len() + j], coefficient(repair[j], column)));
                    assert_eq!(products.fold(0, |a, b| a ^ b), u8::from(i == other));
                }
            }
        }
    }
}
