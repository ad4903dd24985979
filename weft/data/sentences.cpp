#include "weft/data/sentences.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace weft::data {
namespace {

constexpr std::string_view spaces = " \t\r\n\v\f";

bool is_space(char c) { return spaces.find(c) != std::string_view::npos; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// Sorted: words before a point that rarely end a sentence.
constexpr std::array<std::string_view, 44> abbreviations = {
    "adm", "al",   "apr",  "aug", "ave", "bros",   "capt", "cf",  "co",  "col", "corp",
    "dec", "dept", "dr",   "e.g", "eq",  "esp",    "etc",  "feb", "fig", "gen", "gov",
    "i.e", "inc",  "jan",  "jr",  "ltd", "messrs", "mr",   "mrs", "ms",  "mt",  "no",
    "nov", "oct",  "prof", "rep", "rev", "sen",    "sept", "sr",  "st",  "vol", "vs"};

// Whether the word that ends at a point is short for something.
bool abbreviated(std::string_view text, std::size_t point) {
  std::size_t begin = point;
  while (begin > 0 &&
         (std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '.'))
    --begin;
  const std::string_view word = text.substr(begin, point - begin);
  if (word.size() == 1 && is_upper(word[0])) return true;  // an initial
  std::string low(word);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::binary_search(abbreviations.begin(), abbreviations.end(), std::string_view(low));
}

// Where white space that begins here ends, and whether an empty line is in it.
struct Gap {
  std::size_t end;
  bool empty_line;
};
Gap gap_at(std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.find_first_not_of(spaces, at), text.size());
  return {end, std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                          text.begin() + static_cast<std::ptrdiff_t>(end), '\n') > 1};
}

// Behind a mark and what closes with it: the place where the sentence ends, or nothing.
std::size_t end_of_sentence(std::string_view text, std::size_t mark) {
  std::size_t end = mark + 1;
  while (end < text.size() && std::string_view(".!?\"')]}").find(text[end]) != std::string_view::npos) ++end;
  if (end < text.size() && !is_space(text[end])) return std::string_view::npos;
  const Gap gap = gap_at(text, end);
  if (gap.end == text.size() || gap.empty_line) return end;
  if (is_lower(text[gap.end])) return std::string_view::npos;
  if (text[mark] == '.' && end == mark + 1 && abbreviated(text, mark)) return std::string_view::npos;
  return end;
}

}  // namespace

std::vector<std::string_view> sentences_of(std::string_view text, Newlines newlines) {
  std::vector<std::string_view> sentences;
  std::size_t begin = newlines == Newlines::kept ? 0 : std::min(text.find_first_not_of(spaces), text.size());
  const auto close = [&](std::size_t end) {
    const std::size_t next = gap_at(text, end).end;
    const std::size_t stop = newlines == Newlines::kept ? next : end;
    if (stop > begin) sentences.push_back(text.substr(begin, stop - begin));
    begin = next;
  };
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' || c == '!' || c == '?') {
      const std::size_t end = end_of_sentence(text, i);
      if (end == std::string_view::npos) continue;
      close(end);
      i = begin - 1;
    } else if (c == '\n') {
      if (i >= begin && gap_at(text, i).empty_line) {
        close(i);
        i = begin - 1;
      }
    }
  }
  if (begin < text.size()) {
    const std::size_t last = text.find_last_not_of(spaces) + 1;
    close(std::max(begin, std::min(last, text.size())));
  }
  return sentences;
}

}  // namespace weft::data
