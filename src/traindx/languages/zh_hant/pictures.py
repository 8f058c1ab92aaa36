"""Pictures of the first layer's weights, and how the values of every layer are distributed."""

MESSAGES: dict[str, str] = {
    # -- the first layer
    "First-layer weights": "第一層的權重",
    "Each picture is one filter: its weights for red, green and blue.": (
        "每張小圖是一個濾波器：它對紅、綠、藍三色的權重。"
    ),
    "Each picture is one filter.": "每張小圖是一個濾波器。",
    "Each group side by side is one filter, each picture its weights for one input channel.": (
        "並排的一組是一個濾波器，其中每張小圖是它對一個輸入通道的權重。"
    ),
    "Each picture is one filter: a row an input channel, a column a position.": (
        "每張小圖是一個濾波器：一列是一個輸入通道，一行是一個位置。"
    ),
    "Each picture is the weights of one unit, arranged as the image that it is given.": (
        "每張小圖是一個單元的權重，照它所收到的影像排列。"
    ),
    "Each row is the weights of one unit. Blue is below 0, red above.": (
        "每一列是一個單元的權重。藍色小於 0，紅色大於 0。"
    ),
    "Black is the least and white the greatest weight of each by itself.": (
        "每張各自以黑色表示最小的權重，白色表示最大的權重。"
    ),
    "Shown are the first {shown} of {units} units.": "顯示 {units} 個單元中的前 {shown} 個。",
    "Of {inputs} inputs, the first {shown}.": "{inputs} 個輸入中只顯示前 {shown} 個。",
    "They are averaged down from {height} x {width}.": "由 {height} x {width} 平均縮小而成。",
    "Of each, the middle slice.": "各取正中間的一片。",
    "Before training this is noise by design, as random as it was drawn.": (
        "訓練前本來就該是雜訊，因為權重是隨機抽出的。"
    ),
    "Wrong are pictures that are all alike (units that start the same stay the same), flat gray "
    "ones (weights that are all equal), and noise where pretrained weights should be: then they "
    "were not loaded.": (
        "以下情形有問題：所有小圖都一樣（起點相同的單元會一直相同）、整片灰色（權重全都相等），"
        "以及應該是預訓練權重卻仍是雜訊：那表示權重沒有載入。"
    ),
    "Filters of a network that has learnt from images are smooth: edges, bars, blobs of colour.": (
        "從影像學到東西的網路，濾波器會是平滑的：邊緣、條紋、色塊。"
    ),
    "Where they are still noise, it has not converged: too few steps, a learning rate that does "
    'not fit, or too little regularization (CS231n, "Neural Networks Part 3"). Many alike or flat '
    "are capacity that is not used.": (
        "若仍是雜訊，表示尚未收斂：步數太少、學習率不合適，或正則化太弱"
        "（CS231n，“Neural Networks Part 3”）。許多相似或平坦的小圖，是沒有用到的容量。"
    ),
    "input": "輸入",
    "unit": "單元",
    "the first layer has no weight of its own to be looked at": "第一層沒有可供檢視的自有權重",
    "The weights of a first layer were not looked at.": "沒有檢視過第一層的權重。",
    # -- distributions
    "Distributions": "數值分布",
    "Of one forward and backward pass before training. Bands hold the middle 50, 90 and 98 % of "
    "the values; where layers differ by much, the axis is logarithmic away from 0.": (
        "取自訓練前的一次前向與反向傳播。色帶涵蓋中間 50、90、98 % 的值；"
        "各層相差很大時，座標軸在 0 附近以外採對數尺度。"
    ),
    "Histograms: each row is a layer, the dotted line 0, and the number beside it how far it "
    "reaches. A thick bar at 0 stands for exact zeros, as high as they are frequent; they and "
    "0.2 % at either end are left out of the histogram.": (
        "直方圖：每一列是一層，虛線是 0，旁邊的數字是它延伸的範圍。"
        "0 處的粗條代表恰為零的元素，高度即其比例；"
        "這些元素與兩端各 0.2 % 的值不計入直方圖。"
    ),
    "outputs": "輸出",
    "gradients of the outputs": "輸出的梯度",
    "weights": "權重",
    "median": "中位數",
    "± {reach}": "± {reach}",
    "± {reach} · {percent:.0f} % zero": "± {reach} · {percent:.0f} % 為零",
    "{percent:.0f} % not finite": "{percent:.0f} % 非有限值",
    "all zero": "全部為零",
    "Outputs should stay about as wide from layer to layer. A funnel that closes is a signal that "
    "dies out, one that opens one that explodes; two humps at the ends of a tanh or sigmoid are "
    "saturation, and nearly all zeros after a ReLU dead units.": (
        "各層輸出的寬度應大致相同。漏斗漸收表示訊號逐漸消失，漸開表示訊號爆炸；"
        "tanh 或 sigmoid 兩端各有一峰是飽和，ReLU 之後幾乎全為零則是死去的單元。"
    ),
    "Gradients should stay about as wide from layer to layer. Where they close toward the first "
    "layers, those learn slowly or not at all; where they open, training diverges.": (
        "各層梯度的寬度應大致相同。若往前面幾層漸收，那些層學得很慢或學不到；若漸開，訓練會發散。"
    ),
    "Weights should be about as wide as their layer's initialization makes them. A single bar is a "
    "constant; a layer far wider than its siblings was drawn with another gain.": (
        "權重的寬度應與該層的初始化相符。單獨一根粗條是常數；"
        "比同類層寬得多的層，是用另一個增益抽出的。"
    ),
    "Of {total} layers, {looked} evenly spaced ones were looked at.": (
        "{total} 層中平均選取 {looked} 層檢視。"
    ),
    "Histograms are drawn of {shown} of {layers} layers, evenly spaced.": (
        "直方圖畫出 {layers} 層中平均選取的 {shown} 層。"
    ),
    "no layer makes real numbers of this batch": "沒有任何層從這個批次產生實數",
    "There is no kind `{kind}`; there are {known}.": "沒有 `{kind}` 這一種；可用的有 {known}。",
    "Distributions are noted in a preflight, and none are in this run.": (
        "數值分布只在 preflight 中記錄，這次執行沒有。"
    ),
    # -- what else a preflight's page says
    "Measured before training": "訓練前的量測",
    "In network order, before training. The gradient is that at the layer's output, of a random "
    "direction at the network's.": (
        "依網路順序，訓練前。梯度是該層輸出處的梯度，由網路輸出處的隨機方向傳回。"
    ),
    "loss, {when}": "損失，{when}",
    # -- quantities
    "Before training: {form} of {what}, over up to about 65,536 elements.": (
        "訓練前：{what}的{form}，取至多約 65,536 個元素。"
    ),
    "a histogram": "直方圖",
    "quantiles": "分位數",
    "the module's weight": "模組的權重",
    "the two ends, the fraction of exact zeros, that of NaN and infinities, then 32 bins of all "
    "others; 0.2 % are beyond either end": (
        "兩端、恰為零的比例、NaN 與無限大的比例，然後是其餘元素的 32 個區間；兩端之外各有 0.2 %"
    ),
    "the least element, 1, 5, 25, 50, 75, 95, 99 %, and the greatest": (
        "最小的元素，1、5、25、50、75、95、99 %，以及最大的元素"
    ),
    "Weights of the first linear layer or convolution, at most 49,152 of at most 64 units: before "
    "training in a preflight, at the end in a run.": (
        "第一個線性層或卷積層的權重，至多 64 個單元、49,152 個：preflight 取訓練前，訓練取結束時。"
    ),
    "a weight; the `observed` event at the same place tells their shape": (
        "一個權重；同一處的 `observed` 事件說明其形狀"
    ),
    # -- the command line
    "`{option}` stands behind the script, so it is the script's, which refused its arguments. If "
    "it is for traindx, put it before: `{command} {option} … SCRIPT`.": (
        "`{option}` 寫在腳本之後，因此屬於腳本，而腳本拒絕了它的參數。"
        "若它是給 traindx 的，請寫在腳本之前：`{command} {option} … SCRIPT`。"
    ),
}
