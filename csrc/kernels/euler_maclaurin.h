// The coefficients of the Euler-Maclaurin sum, which zeta and its derivatives end with. Knows no function.
#pragma once

namespace tp::special {

/// (2 k)! over the Bernoulli number of 2 k, k from 1 on: what the terms are divided by.
inline constexpr long double kEulerMaclaurin[] = {12.0L,
                                                  -720.0L,
                                                  30240.0L,
                                                  -1209600.0L,
                                                  47900160.0L,
                                                  -1.8924375803183791606e9L,
                                                  7.47242496e10L,
                                                  -2.950130727918164224e12L,
                                                  1.1646782814350067249e14L,
                                                  -4.5979787224074726105e15L,
                                                  1.8152105401943546773e17L,
                                                  -7.1661652561756670113e18L};

}  // namespace tp::special
