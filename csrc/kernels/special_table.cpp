// The choice between the tables of the special functions, for loops that are compiled elsewhere too.
#include "kernels/special_table.h"

namespace tp {

const SpecialTable& special_loops() {
  static const SpecialTable& table = TP_PICK_TABLE(special_table);
  return table;
}

}  // namespace tp
