// What a parameter says of its axes must be all there is to say, once.
#include "weft/mesh/spread.h"

#include "weft/base/error.h"

namespace weft {

View view_of(const Spread& spread, std::string_view parameter) {
  const Axes all = spread.cut | spread.partial | spread.copy;
  const Axes twice =
      (spread.cut & spread.partial) | (spread.cut & spread.copy) | (spread.partial & spread.copy);
  if (!twice.empty())
    fail(Kind::internal, parameter, ": two things are said of ", names(twice),
         "; an axis cuts it, or its gradient is partial along it, or it is a copy");
  const View view =
      (all & (axes_of(View::experts) - axes_of(View::dense))).empty() ? View::dense : View::experts;
  if (all != axes_of(view))
    fail(Kind::internal, parameter, ": its axes are ", names(all), ", and those of its view are ",
         names(axes_of(view)));
  if (!spread.cut.holds(Axis::pp))
    fail(Kind::internal, parameter, ": pp does not cut it; what several stages hold is tied by name");
  if ((spread.partial & data_axes(view)) != data_axes(view))
    fail(Kind::internal, parameter, ": its gradient is not partial along ",
         names(data_axes(view) - spread.partial), ", where ranks read other samples");
  return view;
}

}  // namespace weft
