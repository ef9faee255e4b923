package classic

// CouplingScratch returns how many numbers of scratch CouplePairs needs.
func CouplingScratch(classes int) int { return classes*classes + classes }

// CouplePairs sets p to the probabilities of classes whose pairwise
// probabilities agree best with pairs: of the first class against the second
// one, for each pair (0,1), (0,2), ..., (1,2), .... It minimises the sum of the
// squares of p_j*r_ij - p_i*r_ji by the fixed-point iteration of Wu, Lin and
// Weng (Probability Estimates for Multi-class Classification by Pairwise
// Coupling, 2004, algorithm 2), which ends after 100 rounds or within
// 0.005/classes.
func CouplePairs(p, pairs, scratch []float32) {
	k := len(p)
	q, qp := scratch[:k*k], scratch[k*k:][:k]
	clear(q)
	at := 0
	for i := range k {
		for j := i + 1; j < k; j++ {
			r := pairs[at]
			s := 1 - r
			at++
			q[i*k+i] += float32(s * s)
			q[j*k+j] += float32(r * r)
			q[i*k+j] = float32(-s * r)
			q[j*k+i] = q[i*k+j]
		}
		p[i] = 1 / float32(k)
	}
	for range 100 {
		if coupled(p, q, qp, k) {
			return
		}
	}
}

// coupled makes one round, and reports true, without a change, if none is
// needed.
func coupled(p, q, qp []float32, k int) bool {
	var total, worst float32
	for i := range k {
		qp[i] = 0
		for j, v := range q[i*k:][:k] {
			qp[i] += float32(v * p[j])
		}
		total += float32(p[i] * qp[i])
	}
	for _, v := range qp {
		worst = max(worst, v-total, total-v)
	}
	if worst < 0.005/float32(k) {
		return true
	}
	for i := range k {
		row := q[i*k:][:k]
		diff := (total - qp[i]) / row[i]
		p[i] += diff
		total = (total + float32(diff*(float32(diff*row[i])+float32(2*qp[i])))) / (1 + diff) / (1 + diff)
		for j, v := range row {
			qp[j] = (qp[j] + float32(diff*v)) / (1 + diff)
			p[j] /= 1 + diff
		}
	}
	return false
}
