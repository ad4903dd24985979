// Cuts English and similar text into sentences by rule.
#pragma once

#include <string_view>
#include <vector>

namespace weft::data {

enum class Newlines { dropped, kept };  // kept: white space behind a sentence stays with it

/// A sentence ends with . ! or ? (and closing quotes or brackets) before white space and a beginning: a
/// capital, a digit, an opening quote, or any letter outside ASCII. Not after initials and well-known
/// abbreviations, and always at an empty line. These are not the learned rules of NLTK's Punkt; lists of
/// sentences in the input are taken as they are.
std::vector<std::string_view> sentences_of(std::string_view text, Newlines newlines = Newlines::dropped);

}  // namespace weft::data
