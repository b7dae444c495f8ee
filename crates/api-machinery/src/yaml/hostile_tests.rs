//! Texts that cost a careless reader a time in proportion to the square of their length (CVE-2019-11254): a quarter of a
//! megabyte of each would take it hours.

const BYTES: usize = 1 << 18;

#[test]
fn odd_texts_take_a_time_in_proportion_to_their_length() {
    let pieces = [
        "[", "{", "{a: ", "[a, ", "- ", "? ", "&a ", "*a ", "!t ", "!!", "\"", "'", "\"\\", "# ", "%", "|\n", ">\n",
        "a:\n ", "a: b\n", "- a\n", "\n", " ", "\t", "---\n", "...\n", ":", ",", "a: &x [", "\u{feff}", "\\",
    ];
    for piece in pieces {
        let text = piece.repeat(BYTES / piece.len());
        // Whether it is refused is for other tests; that it ends is for this one.
        drop(super::parse(&text));
        drop(super::parse(&format!("a: {text}")));
    }
    // Ever deeper indents are a length of their own.
    let deep: String = (0..700).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(super::parse(&deep).is_err(), "nesting is bounded");
    let flow = format!("a: [{}]", "b, ".repeat(BYTES / 3));
    drop(super::parse(&flow));
    let keys: String = (0..BYTES / 12).map(|index| format!("k{index}: v\n")).collect();
    assert!(super::parse(&keys).is_ok(), "many keys are nothing odd");
}
